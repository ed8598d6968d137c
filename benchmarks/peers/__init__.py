"""Other ways to place the same job, one module each, all called alike.

Every module has ``NAME``, ``version()`` (None when the tool is not installed),
``VARIANTS`` (its settings to try) and ``place(topology, job, *, unit, variant, seed)``,
which returns an `Answer`, or None when the tool has none.
"""
