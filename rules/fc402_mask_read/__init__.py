"""FC402: a read through a boolean mask."""
