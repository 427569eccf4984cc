"""What each file says of itself, all files together, and what follows across them."""
