"""FC704: torch.compile as a statement, whose result nobody gets."""
