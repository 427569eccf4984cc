"""Where the project compiles: which call compiles what, what holds it then, under which tests, how often."""
