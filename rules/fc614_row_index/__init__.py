"""FC614: a row of a tensor, picked by a number that is in a tensor."""
