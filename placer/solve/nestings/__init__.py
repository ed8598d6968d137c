"""Axes inside axes, laid along the tree in whole units."""
