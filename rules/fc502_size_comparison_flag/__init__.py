"""FC502: a comparison of sizes where an operator wants a bool."""
