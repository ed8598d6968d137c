"""Expert groups in parts that walks improve and programs choose.

`parts_ground` has the domains and units, `parts_asked` what replicas ask for; the
methods are `walked_parts`, `chosen_parts` and
`cheapest_parts`.
"""
