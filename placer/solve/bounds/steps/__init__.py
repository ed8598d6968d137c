"""The bound on the step time: the best of all that the other folders say.

`time` takes the best, `cases` walks through the cases into which placements fall,
`certain` knows what is paid in all of them.
"""
