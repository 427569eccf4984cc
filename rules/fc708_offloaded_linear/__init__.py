"""FC708: compiled blocks whose weights are moved between devices while the model runs."""
