"""Entry point of the child process: `python -m svc_trial_runner.fleet.adapters.isolated FD`."""

import sys

from svc_trial_runner.fleet.adapters.isolated.child import run_child
from svc_trial_runner.fleet.adapters.platform_registry import load_platform

if __name__ == "__main__":
    run_child(int(sys.argv[1]), load_platform)
