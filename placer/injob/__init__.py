"""Inside an allocation: what nodes say of themselves, and ranks placed by it.

What a node runs to tell of itself loads neither numpy nor a solver.
"""
