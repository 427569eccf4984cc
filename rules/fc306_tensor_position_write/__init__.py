"""FC306: slices that are written where a tensor says."""
