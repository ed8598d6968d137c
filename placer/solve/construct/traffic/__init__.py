"""Graphs of what ranks send each other, bisected or cut into tiles."""
