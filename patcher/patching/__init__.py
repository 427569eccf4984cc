"""The files below some paths: read, summarised, patched, and what calls do with that."""
