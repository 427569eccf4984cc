"""FC711 and the checks of numbers that it takes apart."""
