"""Entry point of the compressor: `python -m svc_compressor`."""

import sys

from svc_common.lifecycle import run_process
from svc_compressor.app import build

if __name__ == "__main__":
    sys.exit(run_process("compressor", build))
