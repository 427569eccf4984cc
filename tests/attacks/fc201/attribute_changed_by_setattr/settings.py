def configure(module, changes):
    for name, value in changes.items():
        setattr(module, name, value)
