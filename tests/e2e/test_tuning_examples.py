"""The examples of tuning, each with fewer trials than in its README, through the real services."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from nni.experiment import Experiment
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl, nnictl, shared_shape
from tests.support.notebooks import Notebook
from tests.support.ports import free_port

__all__ = ["nnictl", "shared_shape"]  # fixtures

pytestmark = pytest.mark.timeout(180)

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def services(shared_shape: LocalShape, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "NNI_HOME", "PATH"):
        monkeypatch.setenv(name, shared_shape.environment[name])


def run(
    nnictl: Nnictl, folder: Path, name: str, trials: int, config: str = "config.yml"
) -> tuple[str, list[dict[str, Any]]]:
    """Run a copy of an example to its end; give the experiment and its trials in their order."""
    copy = Path(shutil.copytree(EXAMPLES / name, folder / name))
    given = yaml.safe_load((copy / config).read_text("utf-8"))
    assert trials <= given["maxTrialNumber"]
    given["maxTrialNumber"] = trials
    (copy / config).write_text(json.dumps(given), "utf-8")  # JSON is YAML
    port = free_port()
    experiment = nnictl.create(copy / config, port=port)
    assert Experiment.connect(port).wait_completion(), nnictl.status(experiment)
    assert nnictl.status(experiment)["errors"] == []
    found = nnictl.trials(experiment)
    assert len(found) == trials
    assert {trial["status"] for trial in found} <= {"SUCCEEDED", "EARLY_STOPPED"}
    return experiment, sorted(found, key=lambda trial: int(trial["sequenceId"]))


def parameters(trial: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = trial["hyperParameters"][0]["parameters"]
    return given


def result(trial: dict[str, Any]) -> Any:
    return trial["finalMetricData"][0]["data"]


def test_regression_needs_no_tuner_named(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment, trials = run(nnictl, tmp_path, "regression", 8)

    first = parameters(trials[0])["model"]
    assert first == {"_name": "ridge", "degree": 1, "alpha": 1.0}
    # Who always says the mean is wrong by 77.
    assert min(result(trial)["rmse"] for trial in trials) < 60
    assert nnictl.json("experiment", "importance", experiment, "--json")["metric"] == "rmse"
    log = nnictl.shape.root / experiment / "log" / "dispatcher.log"
    assert "auto: " in log.read_text("utf-8")


def test_front_of_accuracy_and_latency_is_shown(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment, trials = run(nnictl, tmp_path, "multi-objective", 6)

    printed = nnictl.json("experiment", "pareto", experiment, "--json")

    assert [item["metric"] for item in printed["objectives"]] == ["accuracy", "latency_ms"]
    assert printed["trials"] == 6
    assert all(point["values"]["latency_ms"] <= 20 for point in printed["front"])
    assert all(0 < result(trial)["accuracy"] <= 1 for trial in trials)


def test_asha_promotes_networks_with_their_checkpoints(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment, trials = run(nnictl, tmp_path, "asha-mlp", 14)

    exported = tmp_path / "exported.json"
    nnictl("experiment", "export", experiment, "-f", exported, "--type", "json", "-i")
    epochs: dict[int, list[int]] = {}
    for record in json.loads(exported.read_text("utf-8")):
        epochs.setdefault(record["parameter"]["TRIAL_BUDGET"], []).append(
            len(record["intermediate"])
        )
    assert len(epochs[1]) > len(epochs[3]) >= 2
    assert set(epochs[1]) == {1}
    assert set(epochs[3]) == {2}  # the first one is in the checkpoint
    assert {9: set(epochs.get(9, [6]))} == {9: {6}}
    assert len(trials) == sum(map(len, epochs.values()))


def test_asha_stops_networks_that_learn_slowly(nnictl: Nnictl, tmp_path: Path) -> None:
    _experiment, trials = run(nnictl, tmp_path, "asha-mlp", 8, "stopping.yml")

    assert {parameters(trial)["TRIAL_BUDGET"] for trial in trials} == {27}
    assert not any("load_checkpoint_dir" in parameters(trial) for trial in trials)


def test_population_goes_on_from_its_weights(nnictl: Nnictl, tmp_path: Path) -> None:
    _experiment, trials = run(nnictl, tmp_path, "pbt", 18)

    steps = [Path(parameters(trial)["save_checkpoint_dir"]) for trial in trials]
    assert sorted(step.name for step in steps) == ["0"] * 6 + ["1"] * 6 + ["2"] * 6
    assert all((step / "weights.npz").is_file() for step in steps if step.name == "2")
    best = [
        max(result(trial) for trial, step in zip(trials, steps, strict=True) if step.name == name)
        for name in "02"
    ]
    assert best[1] > best[0]


@pytest.mark.skipif(shutil.which("xz") is None, reason="xz is not installed")
def test_options_of_a_program_are_tuned(nnictl: Nnictl, tmp_path: Path) -> None:
    _experiment, trials = run(nnictl, tmp_path, "system-tuning", 8)

    assert parameters(trials[0])["nice"] == 64  # xz -6
    assert all(parameters(trial)["lc"] + parameters(trial)["lp"] <= 4 for trial in trials)
    assert all(result(trial)["seconds"] > 0 for trial in trials)
    assert result(trials[0])["ratio"] < 0.25


def test_tuner_of_the_example_leaves_out_what_its_rule_forbids(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    _experiment, trials = run(nnictl, tmp_path, "scaling", 2)

    # The first two of the grid, by hand; those before cost less.
    factors = [
        tuple(parameters(trial)[name] for name in ("alpha", "beta", "gamma")) for trial in trials
    ]
    assert factors == [(1.0, 1.0, 1.4), (1.0, 1.1, 1.3)]


@pytest.mark.usefixtures("nnictl")  # which stops the experiment if a cell fails
def test_notebooks_start_change_and_stop_an_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(EXAMPLES / "notebooks", tmp_path / "notebooks"))
    monkeypatch.chdir(folder)
    port = {"8080": str(free_port())}
    start = Notebook(folder / "python_api_start.ipynb", port)
    connect = Notebook(folder / "python_api_connect.ipynb", port)

    shown = start.run(until="experiment.stop()")
    changed = connect.run()
    start.run()

    best, _parameters = shown[-2]
    assert best > 0.95
    assert changed[1][1] == 10
    assert changed[2:4] == [10, 12]
    assert changed[-1] == 12
