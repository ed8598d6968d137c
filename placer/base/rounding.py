"""The one tolerance of rounding: of values, bounds and sums that should be equal."""

# Relative difference of two numbers that are the same: sums of a few thousand
# double-precision terms agree to much better than this.
EXACT = 1e-9
