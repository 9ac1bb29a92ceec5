"""Entry point of the fleet: `python -m svc_trial_runner.fleet`."""

import sys

from svc_common.lifecycle import run_process
from svc_trial_runner.fleet.app import build

if __name__ == "__main__":
    sys.exit(run_process("fleet", build))
