"""FC207: a function that breaks all over, with all that it calls."""
