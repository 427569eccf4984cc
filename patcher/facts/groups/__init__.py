"""Rows that belong to groups (experts): loops over the groups that are hit, and what works row by row."""
