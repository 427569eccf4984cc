"""Caches of keys and values: what one is, and who reads and changes its state."""
