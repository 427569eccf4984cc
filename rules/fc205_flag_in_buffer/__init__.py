"""FC205: a buffer that holds a flag, which code that is compiled asks."""
