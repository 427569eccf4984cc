"""FC615: a product of sizes that NumPy takes."""
