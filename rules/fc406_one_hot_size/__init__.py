"""FC406: one-hot rows that are made as wide as the data asks for, and cut."""
