"""FC805: attention, written out by hand."""
