"""Rules of other packages: found where they are installed, examined by their own examples, and begun."""
