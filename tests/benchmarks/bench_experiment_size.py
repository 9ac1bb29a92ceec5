"""How do time per trial, lists, resume and deletion grow with the trials of one experiment?

An experiment of 1,000 and of 10,000 trials is over (`--full`: 50,000, too; `--sizes 20000` for
others), with a folder of seven files for each of its trials. In a real local shape it is opened for
reading, listed, resumed for a hundred trials more, and deleted until its disk is given back.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import httpx

from nni.experiment.client import ManagerClient
from nni.experiment.endpoint import Endpoint
from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.support.finished_experiment import write_finished
from tests.support.local_shape import LocalShape, running_shape
from tests.support.wait import until

SIZES = (1_000, 10_000)
FULL_SIZE = 50_000
FURTHER = 100
"""Trials that the resumed experiment runs."""
FILES = ("parameter.cfg", "run.sh", "stdout", "stderr", ".nni/state", ".nni/metrics")
DELETION_TARGET_S = 5.0
TRIAL = "import nni\nnni.get_next_parameter()\nnni.report_final_result(0.5)\n"


def write_trial_folders(folder: Path, trials: int) -> None:
    """Write what agents leave of each trial."""
    for number in range(trials):
        place = folder / "trials" / f"t{number:06d}"
        (place / ".nni").mkdir(parents=True)
        for name in FILES:
            (place / name).write_bytes(b"x" * 200)
        os.link(place / "stdout", place / "trial.log")


def nnictl(shape: LocalShape, *words: str | Path) -> float:
    """Run a command and return how long it took, in seconds."""
    begin = time.perf_counter()
    shape.nnictl(*words)
    return time.perf_counter() - begin


def rest(shape: LocalShape) -> httpx.Client:
    """Return a client of the manager's REST API."""
    endpoint = shape.endpoint()
    headers = {"Authorization": f"Bearer {endpoint['token']}"}
    return httpx.Client(
        base_url=str(endpoint["http"]), headers=headers, trust_env=False, timeout=300
    )


def measure(shape: LocalShape, home: Path, trials: int) -> None:
    """Print the figures of one size."""
    name = f"size{trials}"
    folder = write_finished(home, name, trials)
    write_trial_folders(folder, trials)
    (home / "trial.py").write_text(TRIAL)
    shape.nnictl("view", name, "--experiment_dir", folder, "--port", str(shape.free_port()))
    root = f"/api/v1/nni/experiments/{name}"
    with rest(shape) as client:
        for path in ("trial-jobs", "metric-data-latest"):
            begin = time.perf_counter()
            client.get(f"{root}/{path}").raise_for_status()
            print_figure(f"/{path}, {trials:,} trials", [time.perf_counter() - begin], "s")
    shape.nnictl("stop", name)
    took_s = nnictl(shape, "resume", name, "--port", str(shape.free_port()))
    print_figure(f"resume, {trials:,} trials", [took_s], "s")
    shape.nnictl("update", "trialnum", name, "--value", str(trials + FURTHER))
    begin = time.perf_counter()
    with rest(shape) as client:
        until(lambda: client.get(f"{root}/check-status").json()["status"] == "DONE", 300.0)
    per_trial_ms = (time.perf_counter() - begin) / FURTHER * 1e3
    print_figure(f"time per trial beyond {trials:,}", [per_trial_ms], "ms")
    shape.nnictl("stop", name)
    facts = shape.endpoint()
    endpoint = Endpoint("", 0, "", facts["http"], facts["grpc"], "", facts["token"])
    with ManagerClient(endpoint) as manager:  # without the start of a process
        begin = time.perf_counter()
        manager.delete(name)
        took_s = time.perf_counter() - begin
    assert not folder.exists()
    assert not list(home.glob(".deleted-*"))
    target = f"<= {DELETION_TARGET_S:g} s" if trials <= 20_000 else ""
    print_figure(f"deletion, disk given back, {trials:,} trials", [took_s], "s", target=target)


def main() -> None:
    """Run the benchmark."""
    print_header(__doc__ or "")
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help=f"{FULL_SIZE:,} trials, too")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    given = parser.parse_args()
    for trials in [*given.sizes, *([FULL_SIZE] if given.full else [])]:
        with private_home() as home, running_shape(home) as shape:
            measure(shape, home, trials)


if __name__ == "__main__":
    main()
