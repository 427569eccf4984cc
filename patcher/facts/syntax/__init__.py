"""The shape of a module: one walk, scopes, names, classes."""
