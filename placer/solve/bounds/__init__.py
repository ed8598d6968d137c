"""Lower bounds: what no placement can beat, with the argument."""
