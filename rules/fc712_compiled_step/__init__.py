"""FC712: a function whose tensor statements are better compiled by themselves."""
