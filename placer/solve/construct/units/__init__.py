"""Groups of ranks whole where domains hold them, the others in parts."""
