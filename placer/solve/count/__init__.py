"""Integer programs on counts: stated as data, solved, their answers dealt out."""
