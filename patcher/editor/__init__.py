"""A language server: what the rules find while code is typed, and their fixes. Only ``server`` knows the protocol."""
