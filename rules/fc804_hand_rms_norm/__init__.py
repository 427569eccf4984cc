"""FC804: RMS norm, written out by hand."""
