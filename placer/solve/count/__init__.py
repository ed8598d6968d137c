"""Integer programs on counts, and their answers dealt out to named domains."""
