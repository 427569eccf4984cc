def advance(model):
    """One channel less in every turn."""
    model.width -= 1
