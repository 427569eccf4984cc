"""Reads of tensor data on the host that stay: what they cost, and what can be moved around them."""
