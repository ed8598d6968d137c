"""Expert groups in parts that programs choose and walks improve.

`parts_ground` has the domains and units, `parts_asked` what replicas ask for; the
methods are `chosen_parts`, `block_parts`, `in_company`, `walked_parts` and
`cheapest_parts`.
"""
