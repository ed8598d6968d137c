"""Placing again after failures: few moves, little cost, and a bound on the moves."""
