"""Local search: better placements near the best that are known."""
