"""FC403: ``repeat_interleave`` with a tensor of repeats, without the size of the result."""
