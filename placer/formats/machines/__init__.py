"""Readers: what other programs know of a machine, in placer's one topology model.

A function a format, listed in `placer.formats.machines.registry`, which says what it
takes and gives. `machine.read_topology` is the way in.
"""
