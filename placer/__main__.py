"""The program ``placer``; it answers Ctrl-C before anything slow is imported."""

import sys

from placer.cli.interrupt import interrupts


def run() -> int:
    """The exit code of the command that the program's arguments say."""
    interrupts.listen()
    from placer.cli.main import main

    code: int = main()
    return code


if __name__ == "__main__":
    sys.exit(run())
