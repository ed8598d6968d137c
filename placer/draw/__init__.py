"""Pictures of plans and sweeps: pure functions that return SVG text."""
