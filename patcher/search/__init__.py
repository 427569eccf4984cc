"""The search for the configuration that is fastest with the same results."""
