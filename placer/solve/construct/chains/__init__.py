"""Pipelines and rings stitched together over fragmented domains.

`shapes` says what is stitched, `stitch` how; `lanes` and `tour` number the chains.
"""
