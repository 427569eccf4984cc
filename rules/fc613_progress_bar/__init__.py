"""FC613: a bar that shows how far a loop is."""
