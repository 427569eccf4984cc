"""FC802: GELU, written out by hand."""
