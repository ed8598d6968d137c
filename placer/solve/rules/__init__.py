"""Rules about hosts and groups: the search under them, and why none is kept."""
