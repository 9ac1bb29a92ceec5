"""Several tuners in one experiment, through the real services."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nni.experiment import Experiment
from tests.support.experiments import trials_in_order, write_experiment
from tests.support.nnictl import Nnictl, nnictl, services_here, shared_shape
from tests.support.ports import free_port

__all__ = ["nnictl", "services_here", "shared_shape"]  # fixtures

pytestmark = pytest.mark.timeout(240)

SEVERAL: dict[str, Any] = {
    "tuner": None,
    "tuners": [
        {"name": "TPE", "classArgs": {"optimize_mode": "minimize"}},
        {"name": "Random", "label": "chance"},
    ],
}


def tuners_of(experiment: Experiment) -> list[str]:
    """Return the proposer of each trial in their order."""
    return [job.tuner for job in trials_in_order(experiment)]


def test_tuners_take_turns_and_are_compared_across_a_kill_and_a_resume(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    config = write_experiment(tmp_path, seed=3, maxTrialNumber=5, **SEVERAL)
    experiment = nnictl.begin(config)
    assert experiment.wait_completion()
    nnictl.shape.kill("dispatcher")
    experiment.update_max_trial_number(8)
    assert experiment.wait_completion()
    experiment.stop()
    port = free_port()
    nnictl("resume", experiment.id, "--port", port)
    experiment = Experiment.connect(port)
    experiment.update_max_trial_number(11)
    assert experiment.wait_completion()

    shown = nnictl.json("experiment", "compare", experiment.id, "--json")
    replayed = experiment.replay()

    assert tuners_of(experiment) == ["TPE", "chance"] * 5 + ["TPE"]
    rows = {row["tuner"]: row for row in shown["tuners"]}
    assert (shown["mode"], rows["TPE"]["trials"], rows["chance"]["trials"]) == ("minimize", 6, 5)
    assert min(row["regret"] for row in rows.values()) == 0
    assert all(row["withResult"] == row["trials"] for row in rows.values())
    assert replayed.repeatable, replayed
    assert nnictl.status(experiment.id)["errors"] == []
    (first,) = [one for one in nnictl.trials(experiment.id) if one["sequenceId"] == 0]
    assert first["tuner"] == "TPE"
    experiment.stop()


def test_bandit_shares_the_budget_and_replays(nnictl: Nnictl, tmp_path: Path) -> None:
    config = write_experiment(tmp_path, maxTrialNumber=16, tunerPolicy="bandit", **SEVERAL)
    experiment = nnictl.begin(config)
    assert experiment.wait_completion()

    counts = Counter(tuners_of(experiment))

    assert sum(counts.values()) == 16
    assert min(counts["TPE"], counts["chance"]) >= 5
    assert experiment.replay().repeatable
    experiment.stop()


def test_wrong_list_is_refused_before_anything_starts(nnictl: Nnictl, tmp_path: Path) -> None:
    config = write_experiment(tmp_path, tuner=None, tuners=[{"name": "TPE"}, {"name": "PBTTuner"}])

    refused = nnictl("create", "--config", config, "--port", free_port(), expect=2)

    assert "tuners[1]: PBTTuner must not be one of several tuners" in refused.stderr
