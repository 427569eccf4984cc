"""FC305: keys and values that are joined to a longer tensor with every call."""
