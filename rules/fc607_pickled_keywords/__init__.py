"""FC607: the keywords of a call, pickled to find what a memo holds for them."""
