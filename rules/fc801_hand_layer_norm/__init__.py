"""FC801: layer norm, written out by hand."""
