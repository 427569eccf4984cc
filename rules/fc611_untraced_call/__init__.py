"""FC611: calls that no graph takes, whatever they are given."""
