"""FC611: a tensor that is made to ask for gradients, in compiled code."""
