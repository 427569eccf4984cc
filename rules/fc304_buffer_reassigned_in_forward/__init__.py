"""FC304: a buffer that forward assigns to the attribute that holds it already."""
