"""Our own rules for fix-compile: what is defined here is found."""
