"""Many models, many machines: what is to be done, where it runs, and one table of what came of it."""
