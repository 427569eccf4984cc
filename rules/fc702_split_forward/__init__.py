"""FC702: a forward that is given a list, and prepares it before it computes."""
