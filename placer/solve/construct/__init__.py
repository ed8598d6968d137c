"""Constructions: placements built from the shape of the job."""
