"""FC206: numbers of NumPy among the sizes of compiled code."""
