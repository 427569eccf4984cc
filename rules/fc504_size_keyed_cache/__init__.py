"""FC504: what is worked out for a size, kept in a dictionary by that size."""
