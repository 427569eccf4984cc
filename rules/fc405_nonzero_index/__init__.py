"""FC405: the places where a condition holds, listed to index with them or to count them."""
