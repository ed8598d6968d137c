"""Chains of units stitched together over fragmented domains."""
