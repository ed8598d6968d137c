"""Graphs of what ranks send each other, cut into boxes or tiles."""
