"""FC610: a drawn number, compared with a rate that is zero as a rule."""
