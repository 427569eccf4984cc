"""FC208: numbers that are read out of tensors without a name that says so."""
