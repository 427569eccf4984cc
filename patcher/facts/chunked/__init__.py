"""Tensors that are split by lengths from a tensor, and what is done to the pieces before they are joined again."""
