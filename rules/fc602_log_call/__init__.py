"""FC602: a message for people."""
