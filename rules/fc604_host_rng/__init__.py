"""FC604: random numbers that the host draws in code that gets compiled."""
