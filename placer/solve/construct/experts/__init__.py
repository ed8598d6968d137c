"""Expert groups in the parts with the fewest hops, as a program chooses them."""
