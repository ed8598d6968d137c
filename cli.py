#!/usr/bin/env python3
"""Run the ``placer`` command from a checkout, installed or not."""

if __name__ == "__main__":
    import os  # pathlib takes longer to load, in which Ctrl-C would be told at length
    import sys

    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120

    from placer.starting import listen

    listen()

    from placer.__main__ import run

    sys.exit(run())
