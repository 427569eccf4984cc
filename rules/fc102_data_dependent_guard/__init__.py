"""FC102: a check of tensor data that raises."""
