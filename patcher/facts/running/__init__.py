"""Who calls what is compiled, with what; what only prepares."""
