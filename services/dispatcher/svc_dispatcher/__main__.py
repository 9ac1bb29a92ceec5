"""Entry point of the dispatcher: `python -m svc_dispatcher`."""

import sys

from svc_common.lifecycle import run_process
from svc_dispatcher.app import build

if __name__ == "__main__":
    sys.exit(run_process("dispatcher", build))
