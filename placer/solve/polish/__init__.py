"""Local search on the hop cost: simulated annealing of units of several sizes."""
