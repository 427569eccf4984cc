"""FC204: a function that reads tensor data on the host again and again."""
