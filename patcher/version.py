"""The version of the tool, as manifests and reports name it."""

VERSION = "0.1.0"
