"""Run the ``placer`` command as ``python -m placer``."""

import sys

from placer.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
