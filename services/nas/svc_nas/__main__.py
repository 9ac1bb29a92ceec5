"""Entry point of the NAS service: `python -m svc_nas`."""

import sys

from svc_common.lifecycle import run_process
from svc_nas.app import build

if __name__ == "__main__":
    sys.exit(run_process("nas", build))
