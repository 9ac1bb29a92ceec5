"""`nni.experiment.Experiment` against the real services of this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nni.experiment import Experiment, TrialJob, TrialMetricData, TrialResult
from nni.experiment.config import ExperimentConfig
from nni.experiment.errors import ConfigError, NotFoundError, RefusedError, WrongStateError
from nni.experiment.rest import get_json
from tests.support import wait
from tests.support.experiments import INSTANT, PATIENT, SPACE, write_experiment
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl, shared_shape
from tests.support.ports import free_port
from tests.support.wait import until

__all__ = ["shared_shape"]  # a fixture


@pytest.fixture(autouse=True)
def nnictl(shared_shape: LocalShape, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nnictl]:
    for name in ("HOME", "NNI_HOME", "PATH"):
        monkeypatch.setenv(name, shared_shape.environment[name])
    commands = Nnictl(shared_shape)
    yield commands
    commands("stop", "--all")


def configured(folder: Path, script: str = INSTANT) -> Experiment:
    write_experiment(folder, script)
    experiment = Experiment("local")
    experiment.config.experiment_name = "Example"
    experiment.config.trial_concurrency = 2
    experiment.config.max_trial_number = 10
    experiment.config.search_space = SPACE
    experiment.config.trial_command = "python3 trial.py"
    experiment.config.trial_code_directory = folder
    experiment.config.tuner.name = "TPE"
    experiment.config.tuner.class_args["optimize_mode"] = "minimize"
    return experiment


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.claim("platform", 58)
def test_run_returns_true_when_done_and_frees_the_port(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = configured(tmp_path)
    port = free_port()

    assert experiment.run(port) is True

    assert is_free(port)
    assert Experiment.get_experiment_metadata(experiment.id)["status"] == "STOPPED"
    assert "DONE: 10/10 trials" in capsys.readouterr().err


def test_run_of_an_algorithm_that_breaks_returns_false(tmp_path: Path) -> None:
    experiment = configured(tmp_path)
    (tmp_path / "broken.py").write_text(
        "from nni.algorithms.hpo.hyperopt_tuner import HyperoptTuner\n"
        "class Broken(HyperoptTuner):\n"
        "    def __init__(self): raise RuntimeError('no luck')\n"
    )
    experiment.config.tuner = {"class_name": "broken.Broken", "code_directory": tmp_path}  # type: ignore[assignment]  # mappings are accepted

    assert experiment.run(free_port()) is False


@pytest.mark.claim("platform", 59)
def test_start_returns_while_trials_run_and_stop_frees_the_port(tmp_path: Path) -> None:
    experiment = configured(tmp_path, PATIENT)
    port = free_port()

    experiment.start(port)

    assert experiment.get_status() == "RUNNING"
    assert not is_free(port)
    experiment.stop()
    assert is_free(port)
    experiment.stop()
    assert experiment.get_status() == "STOPPED"


@pytest.mark.claim("platform", 60)
def test_connected_experiment_is_the_same_one(tmp_path: Path, nnictl: Nnictl) -> None:
    port = free_port()
    experiment_id = nnictl.create(write_experiment(tmp_path, PATIENT), port=port)

    experiment = Experiment.connect(port)
    wait.until(lambda: experiment.get_status() == "RUNNING", 60, "the algorithm")

    assert experiment.id == experiment_id

    def both_read() -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return what both interfaces read; None: the experiment changed between the two."""
        before = experiment.get_experiment_profile()
        rest = get_json(f"http://127.0.0.1:{port}/api/v1/nni/experiment")
        after = experiment.get_experiment_profile()
        unchanged = before | {"execDuration": 0} == after | {"execDuration": 0}
        return (before, rest) if unchanged else None

    read = wait.until(both_read, 60, "two readings without a change between them")
    assert read is not None
    profile, rest = read
    assert profile | {"execDuration": 0} == rest | {"execDuration": 0}
    assert experiment.config.trial_code_directory == tmp_path
    experiment.update_max_trial_number(200)
    shown = nnictl.json("experiment", "show", experiment_id)
    assert shown["params"]["maxTrialNumber"] == 200
    assert shown["revision"] == profile["revision"] + 1
    experiment.stop()
    assert nnictl.status(experiment_id)["status"] == "STOPPED"


@pytest.mark.claim("platform", 61)
def test_results_metrics_and_trials_have_the_documented_fields(tmp_path: Path) -> None:
    experiment = configured(tmp_path)
    experiment.start(free_port())
    until(lambda: experiment.get_status() == "DONE", 60, "the experiment to be done")

    results = experiment.export_data()
    metrics = experiment.get_job_metrics()
    trials = experiment.list_trial_jobs()

    assert len(results) == len(metrics) == len(trials) == 10
    assert all(isinstance(result, TrialResult) for result in results)
    for result in results:
        assert result.value == (result.parameter["x"] - 0.3) ** 2
    first = metrics[results[0].trialJobId]
    assert [metric.type for metric in first] == ["PERIODICAL", "FINAL"]
    assert isinstance(first[0], TrialMetricData)
    assert first[0].timestamp > 1_600_000_000_000
    assert first[0].parameterId.isdecimal()
    assert experiment.get_job_metrics(trials[3].trialJobId).keys() == {trials[3].trialJobId}
    trial = experiment.get_trial_job(trials[3].trialJobId)
    assert isinstance(trial, TrialJob)
    assert trial == trials[3]
    assert trial.sequenceId == 3
    assert trial.startTime is not None
    assert trial.endTime is not None
    assert Path(trial.stderrPath).is_file()
    assert trial.endTime >= trial.startTime > 1_600_000_000_000
    assert experiment.get_job_statistics() == {"SUCCEEDED": 10}
    with pytest.raises(NotFoundError):
        experiment.get_trial_job("nope0")


@pytest.mark.claim("platform", 62)
def test_viewed_and_resumed_experiments_are_returned(tmp_path: Path) -> None:
    experiment = configured(tmp_path)
    experiment.run(free_port())

    viewed = Experiment.view(experiment.id, free_port(), wait_completion=False)
    assert isinstance(viewed, Experiment)
    assert viewed.get_status() == "VIEWED"
    assert len(viewed.list_trial_jobs()) == 10
    viewed.stop()

    resumed = Experiment.resume(experiment.id, free_port(), wait_completion=False)
    assert isinstance(resumed, Experiment)
    resumed.update_max_trial_number(12)
    until(lambda: len(resumed.export_data()) == 12, 60, "two more results")


@pytest.mark.claim("platform", 33)
def test_experiment_of_python_can_be_resumed_by_nnictl(tmp_path: Path, nnictl: Nnictl) -> None:
    experiment = configured(tmp_path)
    experiment.run(free_port())

    nnictl("resume", experiment.id, "--port", free_port())

    nnictl("update", "trialnum", experiment.id, "-v", 11)
    until(lambda: nnictl.status(experiment.id)["status"] == "DONE", 60, "the end of one more trial")
    assert [trial["status"] for trial in nnictl.trials(experiment.id)] == ["SUCCEEDED"] * 11


def test_updates_reach_the_experiment(tmp_path: Path) -> None:
    experiment = configured(tmp_path, PATIENT)
    experiment.start(free_port())

    experiment.update_trial_concurrency(3)
    experiment.update_max_experiment_duration("2h")
    experiment.update_search_space({"x": {"_type": "uniform", "_value": [0, 0.5]}})

    params = experiment.get_experiment_profile()["params"]
    assert params["trialConcurrency"] == 3
    assert params["searchSpace"]["x"]["_value"] == [0, 0.5]


def test_nothing_is_started_for_a_wrong_configuration(tmp_path: Path) -> None:
    experiment = configured(tmp_path)
    experiment.config.trial_command = None

    with pytest.raises(ConfigError, match="trialCommand must be given"):
        experiment.start(free_port())

    with pytest.raises(WrongStateError, match="has not been started"):
        _ = experiment.id


def test_taken_port_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(RefusedError, match=rf"port {port} is in use by program .*pid"):
            configured(tmp_path).start(port)


def test_ready_configuration_is_taken(tmp_path: Path) -> None:
    config = ExperimentConfig.load(write_experiment(tmp_path))

    assert Experiment(config).run(free_port()) is True


def test_process_that_ends_without_stop_leaves_nothing_running(
    tmp_path: Path, nnictl: Nnictl
) -> None:
    config = write_experiment(tmp_path, PATIENT)
    script = (
        "from nni.experiment import Experiment, ExperimentConfig\n"
        f"experiment = Experiment(ExperimentConfig.load({str(config)!r}))\n"
        f"experiment.start({free_port()})\n"
    )

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, capture_output=True)

    assert nnictl.json("experiment", "list", "--json") == []


def test_detached_experiment_outlives_its_process(tmp_path: Path, nnictl: Nnictl) -> None:
    config = write_experiment(tmp_path, PATIENT)
    script = (
        "from nni.experiment import Experiment, ExperimentConfig, RunMode\n"
        f"experiment = Experiment(ExperimentConfig.load({str(config)!r}))\n"
        f"experiment.start({free_port()}, run_mode=RunMode.Detach)\n"
    )

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, capture_output=True)

    assert len(nnictl.json("experiment", "list", "--json")) == 1


def test_foreground_mode_prints_the_log_of_the_manager(tmp_path: Path) -> None:
    config = write_experiment(tmp_path)
    script = (
        "from nni.experiment import Experiment, ExperimentConfig, RunMode\n"
        f"experiment = Experiment(ExperimentConfig.load({str(config)!r}))\n"
        f"experiment.start({free_port()}, run_mode=RunMode.Foreground)\n"
        "experiment.wait_completion()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], check=True, timeout=60, capture_output=True, text=True
    )

    assert "Experiment is RUNNING" in done.stdout


def test_interrupted_run_stops_the_experiment(tmp_path: Path, nnictl: Nnictl) -> None:
    config = write_experiment(tmp_path, PATIENT)
    script = (
        "from nni.experiment import Experiment, ExperimentConfig\n"
        f"experiment = Experiment(ExperimentConfig.load({str(config)!r}))\n"
        f"print(experiment.run({free_port()}))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    until(lambda: nnictl.json("experiment", "list", "--json"), 60, "the experiment")
    for line in process.stdout:
        if "trials" in line:
            break

    process.send_signal(signal.SIGINT)

    rest, _ = process.communicate(timeout=60)
    assert "Experiment stopped" in rest
    assert nnictl.json("experiment", "list", "--json") == []


def test_services_that_were_killed_come_back_with_their_experiments(
    tmp_path: Path, nnictl: Nnictl
) -> None:
    experiment_id = nnictl.create(write_experiment(tmp_path, PATIENT, trialConcurrency=1))
    until(lambda: nnictl.trials(experiment_id), 60, "a trial")

    os.kill(nnictl.shape.endpoint()["pid"], signal.SIGKILL)

    listed = nnictl.json("experiment", "list", "--json")
    assert [item["id"] for item in listed] == [experiment_id]
    assert len(nnictl.trials(experiment_id)) == 1
