"""What runs after what in a function, and which definitions reach a name."""
