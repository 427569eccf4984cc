"""Files on disk: found, read, replaced as a whole, and put back."""
