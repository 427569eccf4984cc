"""The rules' own examples, run on the user's PyTorch: what helps there, what is no longer needed, what is wrong."""
