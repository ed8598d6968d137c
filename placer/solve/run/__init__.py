"""What every search works with: the incumbent, the budget, the result."""
