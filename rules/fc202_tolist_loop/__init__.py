"""FC202: the numbers of a tensor are read into a list."""
