"""Command line of a strategy's process; only the NAS service calls it.

python -m nni.nas.host --in-fd 5 --out-fd 6 --parent-pid 123
"""

import argparse
import logging
import sys
from pathlib import Path

from nni.hpo.host.__main__ import kill_with_parent
from nni.hpo.host.command_pipe import CommandPipe


def main() -> int:
    """Parse the command line; run the strategy of the document sent by a pipe; return 0 or 1."""
    parser = argparse.ArgumentParser(prog="python -m nni.nas.host")
    parser.add_argument("--in-fd", type=int, required=True)
    parser.add_argument("--out-fd", type=int, required=True)
    parser.add_argument("--parent-pid", type=int, default=0)
    arguments = parser.parse_args()
    # The working directory, a log folder, is on the import path because of `-m`.
    here = str(Path.cwd())
    sys.path[:] = [entry for entry in sys.path if entry not in {"", here}]
    if arguments.parent_pid and not kill_with_parent(arguments.parent_pid):
        return 1
    logging.basicConfig(format="[%(asctime)s] %(levelname)s (%(name)s) %(message)s")
    # After the parent is watched: it takes a second to import torch.
    from nni.nas.host.strategy_run import run_strategy

    return run_strategy(CommandPipe(arguments.in_fd, arguments.out_fd))


if __name__ == "__main__":
    sys.exit(main())
