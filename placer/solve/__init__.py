"""The search: constructions, walks and lower bounds, one driver over them."""
