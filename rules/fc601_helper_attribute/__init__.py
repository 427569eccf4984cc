"""FC601: a value of a host object, read in code that gets compiled."""
