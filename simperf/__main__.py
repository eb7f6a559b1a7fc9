"""`python -m simperf` is the command `simperf`."""

import sys

from simperf.cli import main

if __name__ == "__main__":
    sys.exit(main())
