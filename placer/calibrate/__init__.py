"""Compute times of a job from measured steps: measurements in, least squares out."""
