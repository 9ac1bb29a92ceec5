"""Nothing that a benchmark starts outlives it, by whatever it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support import processes, wait

ROOT = Path(__file__).parents[3]
BENCHMARK = f"""\
import os, subprocess, sys, time
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from tests.benchmarks.measure import print_header, private_home

SLEEP = [sys.executable, "-c", "import time; time.sleep(300)"]
DAEMON = '''
import subprocess, sys
quiet = subprocess.DEVNULL
options = dict(start_new_session=True, stdout=quiet, stderr=quiet)
print(subprocess.Popen(sys.argv[1:], **options).pid)
'''

print_header("How long?")
with private_home() as home:
    # A daemon in a session of its own, whose parent ends; a fork; a child without the mark.
    daemon = [sys.executable, "-c", DAEMON, *SLEEP]
    first = int(subprocess.run(daemon, capture_output=True, check=True).stdout)
    second = os.fork()
    if second == 0:
        time.sleep(300)
    third = subprocess.Popen(SLEEP, env={{}})
    new, announced = Path(sys.argv[1] + ".new"), Path(sys.argv[1])
    new.write_text(f"{{first}} {{second}} {{third.pid}} {{os.getpid()}} {{home}}")
    new.rename(announced)
    if len(sys.argv) > 2:
        os._exit(int(sys.argv[2]))
    third.wait()
"""


class RunningBenchmark:
    """Benchmark that has started its processes."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        script, announced = folder / "bench_sleep.py", folder / "announced"
        script.write_text(BENCHMARK)
        variables = {name: text for name, text in os.environ.items() if name != "NNI_BENCH_MARK"}
        self.guard = subprocess.Popen(
            [sys.executable, str(script), str(announced), *arguments],
            stdout=subprocess.DEVNULL,
            env={**variables, "TMPDIR": str(folder)},
        )
        try:
            wait.until(announced.exists, 30, "the benchmark has started its processes")
        except TimeoutError:
            self.guard.kill()
            raise
        *numbers, home = announced.read_text().split()
        self.started = [int(number) for number in numbers]
        self.benchmark = self.started[-1]
        self.home = Path(home)

    def wait_until_nothing_is_left(self) -> None:
        wait.until(
            lambda: not list(processes.alive(self.started)) and not self.home.exists(),
            30,
            "processes and folder of the benchmark are gone",
        )


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningBenchmark]:
    made = RunningBenchmark(tmp_path)
    yield made
    made.guard.kill()
    made.guard.wait()
    for number in processes.alive(made.started):
        psutil.Process(number).kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_killed_benchmark_leaves_nothing_running(
    running: RunningBenchmark, number: signal.Signals
) -> None:
    running.guard.send_signal(number)

    running.wait_until_nothing_is_left()
    assert running.guard.wait() in {128 + number, -number}


def test_benchmark_killed_below_its_guard_leaves_nothing_running(
    running: RunningBenchmark,
) -> None:
    os.kill(running.benchmark, signal.SIGKILL)

    running.wait_until_nothing_is_left()
    assert running.guard.wait() != 0


@pytest.mark.parametrize("code", [0, 3])
def test_benchmark_that_ends_by_itself_has_its_exit_code(tmp_path: Path, code: int) -> None:
    ended = RunningBenchmark(tmp_path, str(code))

    assert ended.guard.wait() == code
    ended.wait_until_nothing_is_left()
