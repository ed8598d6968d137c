"""Groups that no placement keeps whole, and how evenly they can be cut.

How many groups of an axis nodes or racks cannot hold, how large their parts are, and
how many stages of a replica wait for one.
"""
