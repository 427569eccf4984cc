"""Edits of a syntax tree and of its text."""
