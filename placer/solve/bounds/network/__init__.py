"""The best network imaginable: what every operation takes at the least.

The step time is priced on it as on any machine. `limit` has what an argument has
found out about some groups.
"""
