"""FC104: a read of tensor data in a loop."""
