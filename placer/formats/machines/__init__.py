"""Readers: what other programs know of a machine, in placer's one topology model.

One module a format, listed in `placer.formats.machines.registry`, which says what a
format's module offers. `machine.read_topology` is the way in.
"""
