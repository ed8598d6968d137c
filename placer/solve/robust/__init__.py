"""Placements under rules about hosts and failures."""
