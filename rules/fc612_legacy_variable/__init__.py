"""FC612: tensors wrapped as PyTorch before 0.4 had it."""
