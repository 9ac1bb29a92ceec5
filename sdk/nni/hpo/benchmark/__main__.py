"""Documented command line of the benchmark: `python -m nni.hpo.benchmark COMMAND`."""

import sys

from nni_benchmark.command import main

if __name__ == "__main__":
    sys.exit(main())
