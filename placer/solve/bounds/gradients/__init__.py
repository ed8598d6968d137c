"""What rings of gradients cost: NICs against cuts of pipelines, uplinks, links.

A ring is as slow as the domain where it has the fewest members, and as what it shares
with others.
"""
