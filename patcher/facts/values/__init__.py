"""What an expression holds: kinds, dtypes, ranks and shapes, and how sure that is."""
