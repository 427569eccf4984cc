"""FC710 and the places where it writes settings."""
