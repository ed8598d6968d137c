"""The library calls that bring inputs, search, cost and checker together."""
