"""Launches by nodes: consecutive ranks, cut where nodes end."""
