"""Where many independent points are worked out: here, on all cores, on a cluster."""
