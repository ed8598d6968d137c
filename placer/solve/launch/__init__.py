"""Other rank orders and launchers: which to choose, and what they would save."""
