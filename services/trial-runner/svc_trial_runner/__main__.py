"""Entry point of the agent: `python -m svc_trial_runner [--pool POOL] [--max-trials N]`.

A fleet starts it with `--settings FILE`, see `agent_settings`.
"""

import sys

from svc_common import environment
from svc_common.errors import InvalidArgumentError
from svc_common.inspection import forbid_inspection
from svc_common.lifecycle import run_process
from svc_trial_runner.app import build
from svc_trial_runner.settings import read_settings


def main() -> int:
    """Read secrets and settings, then run the agent as this process; return the exit code."""
    forbid_inspection()  # before the secrets are in memory
    try:
        environment.load_secrets()
        settings = read_settings(sys.argv[1:])
    except InvalidArgumentError as error:
        sys.stderr.write(f"ERROR: {error.message}\n")
        return 2
    return run_process("trial-runner", lambda service: build(service, settings), settings.grace_s)


if __name__ == "__main__":
    sys.exit(main())
