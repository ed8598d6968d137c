"""Measured steps of many layouts of one model, and how placer ranks them."""
