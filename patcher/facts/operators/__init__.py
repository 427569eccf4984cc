"""Operators that are written out by hand: what a function computes, in a normal form, and which of PyTorch's it is."""
