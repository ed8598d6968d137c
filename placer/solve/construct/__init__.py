"""Constructions: placements built from the shape of the job, or all of a small one."""
