"""What the parts of expert groups cost that domains do not hold whole.

All starts in `expert_parts`: prices of parts, company for gradients, whole numbers of
parts, and nodes that hold runs of ranks.
"""
