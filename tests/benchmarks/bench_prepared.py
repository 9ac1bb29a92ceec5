"""How soon is a request answered that comes while, or after, the host worked ahead?

The real host process over pipes, GPTuner with 100 results in ten dimensions. A trial reports its
result, takes a while to exit, and the request follows its end: time from request to answer. With no
time in between nothing can be prepared, so that the first line is what an ask costs.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.benchmarks.measure import print_figure, print_header

SEED = 0
KNOWN = 100
ROUNDS = 25
EXITS_MS = (0, 20, 60, 150)
"""How long a trial takes from its report to its end; plain Python takes some 30 ms."""
SPACE = {f"x{i}": {"_type": "uniform", "_value": [0, 1]} for i in range(10)}


def loss(point: dict[str, float]) -> float:
    return float(sum((value - 0.3) ** 2 for value in point.values()))


class Host:
    """The dispatcher's side of a host."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = os.fdopen(commands, "w")
        self._answers = os.fdopen(answers)
        self._position = 0

    def tell(self, *commands: dict[str, Any]) -> None:
        """Send commands as one batch of events."""
        self._position += 1
        for index, command in enumerate(commands):
            self._commands.write(json.dumps(command | {"position": [self._position, index]}) + "\n")
        self._commands.flush()

    def until(self, key: str) -> dict[str, Any]:
        """Return the next answer that has a key."""
        for line in self._answers:
            answer: dict[str, Any] = json.loads(line)
            if key in answer:
                return answer
        raise EOFError("the host has ended")


@contextmanager
def running_host() -> Iterator[Host]:
    host_in, commands = os.pipe()
    answers, host_out = os.pipe()
    line = [sys.executable, "-m", "nni.hpo.host"]
    line += ["--in-fd", str(host_in), "--out-fd", str(host_out), "--parent-pid", str(os.getpid())]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(line, pass_fds=(host_in, host_out), env=environment) as process:
        os.close(host_in)
        os.close(host_out)
        host = Host(commands, answers)
        try:
            yield host
        finally:
            process.kill()


def start(host: Host) -> None:
    host.tell(
        {
            "op": "initialize",
            "experiment_id": "bench",
            "tuner": {"name": "GPTuner", "class_args": {"optimize_mode": "minimize"}},
            "assessor": None,
            "advisor": None,
            "search_space": SPACE,
            "seed": SEED,
            "log_level": "error",
            "eager": False,
        }
    )
    host.until("ready")
    rng = np.random.default_rng(SEED)
    points = [dict(zip(SPACE, row.tolist(), strict=True)) for row in rng.random((KNOWN, 10))]
    data = [{"parameter": point, "value": loss(point)} for point in points]
    host.tell({"op": "import_data", "data": data})


def request(host: Host, number: int) -> dict[str, float]:
    answer = host.until("parameters")
    parameters: dict[str, float] = answer["parameters"][0][1]
    assert answer["parameters"][0][0] == number
    return parameters


def generate(number: int) -> dict[str, Any]:
    return {
        "op": "generate",
        "request_id": str(number),
        "parameter_ids": [number],
        "replayed": False,
    }


def answer_times(exit_ms: float) -> list[float]:
    """Give milliseconds from requests to answers."""
    times: list[float] = []
    with running_host() as host:
        start(host)
        host.tell(generate(0))
        point = request(host, 0)
        for number in range(1, ROUNDS + 1):
            trial = f"t{number}"
            host.tell(
                {"op": "metric", "metric": [trial, 0, number - 1, True, 0, loss(point), False]}
            )
            time.sleep(exit_ms / 1000)
            began = time.perf_counter()
            host.tell(
                {"op": "trial_end", "end": [trial, number - 1, "SUCCEEDED", False]},
                generate(number),
            )
            point = request(host, number)
            times.append((time.perf_counter() - began) * 1000)
    return times


def main() -> None:
    print_header(str(__doc__), seed=SEED, packages=["numpy"])
    for exit_ms in EXITS_MS:
        print_figure(
            f"request to answer, {exit_ms} ms after the result", answer_times(exit_ms), "ms"
        )


if __name__ == "__main__":
    main()
