"""FC209: a batch that is cut to its longest row."""
