"""Simulated annealing on the exact cost: units, starts, walks and races of walks."""
