"""Equal placements: fewest changes against a placement before."""
