"""Entry point of an unpacked bundle, its `run.py`: the agent, or the worker's program.

`python -I -S run.py agent SETTINGS_FILE`, where `-` is stdin, and `python -I -S run.py worker
COMMAND ...`: no package of the machine is on the path, only those of the bundle behind the standard
library.
"""

import runpy
import sys
from pathlib import Path


def main() -> None:
    """Run the agent if the first argument is `agent`, else the worker's program."""
    sys.path.append(str(Path(__file__).resolve().parent / "site"))
    program, *arguments = sys.argv[1:]
    if program == "agent":
        sys.argv = ["svc_trial_runner", "--settings", *arguments]
        runpy.run_module("svc_trial_runner", run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["worker", *arguments]
        runpy.run_module(
            "svc_trial_runner.fleet.adapters.bundles.worker", run_name="__main__", alter_sys=True
        )


if __name__ == "__main__":
    main()
