"""FC501: position ids that are expanded, not repeated, and then handed to a block that may be compiled by itself."""
