"""Ranks in some sequence, filled into the tree."""
