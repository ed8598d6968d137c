"""The least hop cost, from the least cut of every tier.

`hop_cuts` puts together what `tier_cut` says of each tier, and what the `parted_` files
say of two tiers at once.
"""
