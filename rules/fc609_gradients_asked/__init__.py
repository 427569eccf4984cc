"""FC609: whether a tensor asks for gradients, set in compiled code."""
