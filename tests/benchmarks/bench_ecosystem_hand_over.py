"""How long does a running experiment with 1,000 results take to hand over to another tuner?

The experiment is a shared study on services of its own, so that results cost little time: 1,000
trials of random search in two parameters. Counted from the request until the first suggestion of
the other tuner is in hand: validation, event, start of the host, import of the results, suggestion.
Each tuner takes over from the one before, beside one trial that runs. Target: 2 s.

./dev bench ecosystem_hand_over
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from nni.cli.session import manager
from nni.experiment import SharedStudy
from nni.experiment.client import ManagerClient
from nni.experiment.config.replacement_tuner import replacement_tuner
from nni.experiment.conversion import algorithm_to_proto
from nni_proto.trial.v1 import trial_service_pb2
from nni_wire.values import from_value
from tests.benchmarks.figures import Figure, at_most, print_figures
from tests.benchmarks.measure import print_header, private_home

RESULTS = 1_000
LIMIT_S = 2.0
NAME = "handover"
SPACE = {
    "x": {"_type": "uniform", "_value": [-1, 1]},
    "y": {"_type": "uniform", "_value": [-1, 1]},
}
TUNERS = ("TPE", "auto", "Anneal", "Evolution", "GPTuner")


def provenance(client: ManagerClient, number: int) -> dict[str, object]:
    """Return the provenance of the trial with this number."""
    request = trial_service_pb2.ListTrialsRequest(experiment_id=NAME)
    trial = next(one for one in client.trials(request) if one.sequence_id == number)
    origin: dict[str, object] = from_value(trial.provenance)
    return origin


def run_trials(study: SharedStudy) -> None:
    """Ask and tell `RESULTS` trials."""
    for _ in range(RESULTS):
        trial = study.ask()
        study.tell(trial, trial.parameters["x"] ** 2 + trial.parameters["y"] ** 2)


def hand_over(study: SharedStudy, client: ManagerClient, name: str) -> Figure:
    """Hand over to a tuner beside a trial that runs; return the time until its first suggestion.

    Raises:
        AssertionError: the suggestion is not of this tuner, or it has not learned all results.
    """
    running = study.ask()
    message = algorithm_to_proto(replacement_tuner(name))
    began_s = time.perf_counter()
    client.update(NAME, tuner=message)
    accepted_s = time.perf_counter() - began_s
    trial = study.ask()
    took_s = time.perf_counter() - began_s
    origin = provenance(client, trial.id)
    assert origin["algorithm"] == name
    assert int(str(origin["results"])) >= RESULTS
    study.tell(trial, 1.0)
    study.tell(running, 1.0)
    what = f"hand-over of {origin['results']} results to {name}"
    return at_most(what, took_s, LIMIT_S, " s", f"accepted after {accepted_s:.2g} s")


def main() -> None:
    """Measure each hand-over, and print the table."""
    print_header(__doc__ or "")
    with private_home():
        try:
            with SharedStudy(
                NAME, SPACE, tuner="Random", optimize_mode="minimize", seed=1
            ) as study:
                run_trials(study)
                with manager() as client:
                    figures = [hand_over(study, client, name) for name in TUNERS]
        finally:
            os.system(f"{sys.executable} -m nni.cli.main stop --all >/dev/null 2>&1")
            os.system(f"{sys.executable} -m nni.cli.main down >/dev/null 2>&1")
    print_figures(figures)


if __name__ == "__main__":
    main()
