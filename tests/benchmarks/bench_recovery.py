"""How long after the start of an algorithm host comes its first new suggestion?

The host is the real process, `python -m nni.hpo.host` over pipes, and is fed the whole log of an
experiment with 10,000 results, as after a crash: four commands a trial. The named tuners go on from
a checkpoint; a tuner of the user's own has none and replays everything. Counted from before
the process is created until the answer is read. Target: 1 s.

    python tests/benchmarks/bench_recovery.py [--results 10000] [--runs 5]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from nni.hpo.host.checkpoints import CheckpointSchedule
from nni.hpo.host.command_loop import CommandLoop, digest_with
from tests.benchmarks.measure import print_figure, print_header
from tests.benchmarks.mixed_space import SPACE, drawn_points, value_of

SEED = 0
CUSTOM = """
import random
from nni.tuner import Tuner

class Mine(Tuner):
    def __init__(self):
        self.results = []
    def update_search_space(self, search_space):
        self.space = search_space
    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": random.Random(parameter_id).random()}
    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        self.results.append((parameters, value))
"""
Command = dict[str, Any]


class Always(CheckpointSchedule):
    """Checkpoint schedule that is always due."""

    def __call__(self) -> bool:
        """Return whether a checkpoint is due."""
        return True


class Quiet:
    """Pipe of given commands that discards the answers."""

    def __init__(self, *commands: Command) -> None:
        self.eager = False
        self._commands = commands

    def commands(self) -> Iterable[Command]:
        """Return the commands."""
        return self._commands

    def write(self, message: Command) -> None:
        """Forget an answer."""


def initialize(folder: Path, tuner: dict[str, Any]) -> Command:
    """Return the first command of a host."""
    return {
        "op": "initialize",
        "experiment_id": "recovery",
        "position": [1, 0],
        "tuner": tuner,
        "assessor": None,
        "advisor": None,
        "search_space": SPACE,
        "seed": SEED,
        "log_level": "warning",
        "eager": False,
        "checkpoint": str(folder / f"{tuner.get('name', 'custom')}.json"),
    }


def log_of(points: list[dict[str, Any]]) -> list[Command]:
    """Return what the dispatcher sends of finished trials, after `initialize`."""
    commands: list[Command] = []
    for number, point in enumerate(points):
        asked, done = 2 + 4 * number, {"trial_id": f"t{number}"}
        commands += [
            {
                "op": "generate",
                "position": [asked, 0],
                "request_id": f"r{number}",
                "parameter_ids": [number],
                "replayed": True,
            },
            {"op": "recorded", "position": [asked + 1, 0], "parameters": [[number, point]]},
            {
                "op": "metric",
                "position": [asked + 2, 0],
                "metric": [done["trial_id"], 1, number, True, 0, value_of(point), False],
            },
            {
                "op": "trial_end",
                "position": [asked + 3, 0],
                "end": [done["trial_id"], number, "SUCCEEDED", False],
            },
        ]
    return commands


def request(number: int) -> Command:
    """Return the request for the first suggestion that is new."""
    return {
        "op": "generate",
        "position": [2 + 4 * number, 0],
        "request_id": "new",
        "parameter_ids": [number],
        "replayed": False,
    }


def keep_checkpoint(first: Command, points: list[dict[str, Any]]) -> None:
    """Write the checkpoint of a tuner that knows the results, as of their last event.

    The tuner imports them, which is faster; the digest is that of the log.
    """
    data = [{"parameter": point, "value": value_of(point)} for point in points]
    known = {"op": "import_data", "position": [2, 0], "data": data}
    asked = request(len(points) - 1)  # what it learns before the first request, it has learnt
    end = log_of(points)[-1]
    CommandLoop(Quiet(first, known, asked, end), lambda _level: None, Always()).run()
    checkpoint = Path(first["checkpoint"])
    content = json.loads(checkpoint.read_text())
    content["digest"] = reduce(digest_with, log_of(points), 0)
    checkpoint.write_text(json.dumps(content))


def recovery(commands: bytes, folder: Path) -> tuple[float, float]:
    """Return seconds until the new suggestion, and the CPU seconds of the host."""
    to_host, from_host = os.pipe(), os.pipe()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began_s = time.perf_counter()
    line = [sys.executable, "-m", "nni.hpo.host"]
    line += ["--in-fd", str(to_host[0]), "--out-fd", str(from_host[1])]
    environment = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    environment |= {"OPENBLAS_NUM_THREADS": "1"}
    host = subprocess.Popen(line, cwd=folder, env=environment, pass_fds=(to_host[0], from_host[1]))
    os.close(to_host[0])
    os.close(from_host[1])
    writer = threading.Thread(target=_write, args=(to_host[1], commands), name="feed")
    writer.start()
    with os.fdopen(from_host[0]) as answers:
        for text in answers:
            answer = json.loads(text)
            assert "failed" not in answer and "unbuildable" not in answer, answer  # noqa: PT018 - one invariant
            if answer.get("request_id") == "new":
                break
        else:
            raise RuntimeError(f"the host ended with code {host.wait()} before it answered")
        seconds = time.perf_counter() - began_s
        writer.join()
        os.close(to_host[1])
        host.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def measured(
    tuner: dict[str, Any], points: list[dict[str, Any]], runs: int, folder: Path
) -> list[tuple[float, float]]:
    """Return seconds and CPU seconds of some recoveries of one tuner."""
    first = initialize(folder, {**tuner, "code_directory": str(folder)})
    if "name" in tuner:
        keep_checkpoint(first, points)
    commands = [first, *log_of(points), request(len(points))]
    if "name" not in tuner:
        for command in commands:  # so that replay meets what it makes
            if command["op"] == "recorded":
                command["parameters"] = []
    data = "".join(json.dumps(command, separators=(",", ":")) + "\n" for command in commands)
    return [recovery(data.encode(), folder) for _ in range(runs)]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print_header(str(__doc__), seed=SEED, packages=["numpy"])
    points = drawn_points(arguments.results, SEED)
    tuners = [{"name": "TPE"}, {"name": "auto"}, {"class_name": "recovery_tuner.Mine"}]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "recovery_tuner.py").write_text(CUSTOM)
        for tuner in tuners:
            runs = measured(tuner, points, arguments.runs, folder)
            word = tuner.get("name", "a tuner of the user's own, no checkpoint")
            waits = [seconds for seconds, _ in runs]
            print_figure(f"{word}, {len(points)} results", waits, "s", target="<= 1 s")
            print_figure("  of the host", [cpu for _, cpu in runs], "s CPU")


if __name__ == "__main__":
    main()
