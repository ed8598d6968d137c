"""What is to be placed on what, at what cost, and what must stay together."""
