"""Checks of data that raise, and output: what ends a graph to tell somebody something."""
