"""FC709: timesteps that are rounded before they are embedded."""
