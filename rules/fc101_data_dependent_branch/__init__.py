"""FC101: a branch on the data of a tensor."""
