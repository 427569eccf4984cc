"""FC608: the items of a dict, put in order together with their values."""
