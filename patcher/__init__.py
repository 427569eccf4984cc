"""The engine of fix-compile: from a file to a proven patch. It never imports a rule and never imports torch."""
