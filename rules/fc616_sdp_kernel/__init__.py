"""FC616: the context manager by which attention chose its kernels."""
