"""What a measurement is asked for, and what it may cost."""
