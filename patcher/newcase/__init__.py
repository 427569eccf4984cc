"""A first case file for a model: what its project says of how it is built and called; blanks for the rest."""
