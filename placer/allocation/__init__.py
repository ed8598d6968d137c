"""Which nodes: those of one job or several, out of the free nodes of a machine."""
