"""The machine's tree: what fits its domains, filling it, its symmetries."""
