"""Pool of processes for searches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.wait import until

PROGRAM = """
import math
import os
import sys
from pathlib import Path

from nni_benchmark.processes import search_in_processes
from nni_benchmark.searcher import TunerSearcher
from nni_benchmark.suite import suite_problems

if __name__ == "__main__":
    jobs = ((TunerSearcher("Random"), "branin", seed) for seed in range(10**6))
    for run, _ in search_in_processes(jobs, suite_problems, 3, 2, math.inf):
        Path(sys.argv[1]).write_text(str(os.getpid()))
"""


@pytest.mark.slow
def test_processes_end_when_their_caller_is_killed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    said = tmp_path / "said"
    caller = subprocess.Popen([sys.executable, tmp_path / "program.py", said])
    try:
        until(said.exists, timeout_s=50)
        searching = _children_of(caller.pid)
    finally:
        caller.kill()
        caller.wait()

    assert searching
    until(lambda: not any(_is_alive(process) for process in searching), timeout_s=20)


def _children_of(process: int) -> list[int]:
    return [
        int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(") ")[1][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # gone before or after it was opened
        return False
