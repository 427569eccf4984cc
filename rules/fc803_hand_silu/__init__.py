"""FC803: SiLU, written out by hand."""
