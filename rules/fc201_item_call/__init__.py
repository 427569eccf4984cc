"""FC201: a number that is read out of a tensor though the host knows it, or though a tensor would do."""
