"""Numbers that the host knows, kept in tensors: what they are made of, where they go, who sets them anew."""
