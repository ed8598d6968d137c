"""One annealer on the exact cost of changes."""
