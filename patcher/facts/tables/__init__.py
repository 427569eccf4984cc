"""What names of Python, PyTorch and NumPy mean: tables only. The lowest floor."""
