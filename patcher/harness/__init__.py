"""The accuracy and performance harness: does a patched model still compute the same, and what has the patch gained."""
