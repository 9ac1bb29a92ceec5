"""Architecture search whose candidates are trials of the services, with kills in mid-search."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_shape import LocalShape
from tests.support.nnictl import shared_shape
from tests.support.processes import named
from tests.support.search_scripts import run_search
from tests.support.wait import until

__all__ = ["shared_shape"]  # a fixture

SPACE = """\
import pathlib, time
import nni
from torch import nn
from nni.nas.nn.pytorch import LayerChoice, ModelSpace, MutableLinear


class Net(ModelSpace):
    def __init__(self):
        super().__init__()
        width = nni.choice("width", list(range(1, 41)))
        self.hidden = MutableLinear(4, width)
        self.activation = LayerChoice([nn.ReLU(), nn.Tanh()], label="activation")
        self.head = MutableLinear(width, 2)

    def forward(self, inputs):
        return self.head(self.activation(self.hidden(inputs)))


class Table:  # as an argument, it travels as a pickle
    def __init__(self, size):
        self.values = bytes(size)


def evaluate(model, gate, table=None):
    assert table is None or len(table.values) == 100_000
    width = model.hidden.out_features
    nni.report_intermediate_result(width / 2)
    while not pathlib.Path(gate).exists():
        time.sleep(0.02)
    nni.report_final_result(float(width))
"""
SEARCH = """\
import json, logging, os, sys
from space import Net, evaluate
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.strategy import Random

act, root, gate, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
is_killed = act == "run_without_stop"
logging.basicConfig(level=logging.INFO)
config = NasExperimentConfig(
    "ts", "simplified", "local", trial_concurrency=3, max_trial_number=count,
    experiment_working_directory=root,
)
search = NasExperiment(
    Net(), FunctionalEvaluator(evaluate, gate=gate), Random(seed=0), config, id="search"
)
assert (search.run if is_killed else getattr(search, act))(port=0)
if is_killed:
    os.kill(os.getpid(), 9)
models = search.strategy.list_models()
outcome = [(model.sample["width"], model.sample["activation"], model.metric) for model in models]
counted = len(search.state_dict()["models"])
search.stop()
print(json.dumps({"counted": counted, "models": outcome}))
"""
API = """\
import json, sys
from space import Net, Table, evaluate
from nni.experiment import Experiment
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.strategy import GridSearch

root, gate, port = sys.argv[1], sys.argv[2], int(sys.argv[3])


def search(count):
    config = NasExperimentConfig(
        "ts", "simplified", "local", trial_concurrency=2, max_trial_number=count,
        experiment_working_directory=root, spill=True,
    )
    evaluator = FunctionalEvaluator(evaluate, gate=gate, table=Table(100_000))
    return NasExperiment(Net(), evaluator, GridSearch(seed=0), config, id="api")


first = search(2)
first.start(port)
channel = first.tuner_command_channel
first.update_trial_concurrency(1)
first.strategy.engine.wait_models()
trials = first.list_trial_jobs()
metrics = first.get_job_metrics(trials[0].trialJobId)
found = {
    "channel": channel, "status": first.get_status(),
    "statistics": first.get_job_statistics(),
    "samples": [trial.hyperParameters[0].parameters["sample"] for trial in trials],
    "one": first.get_trial_job(trials[1].trialJobId).status,
    "metrics": [metric.data for metric in metrics[trials[0].trialJobId]],
    "results": [result.value for result in first.export_data()],
}
first.stop()
found["stopped"] = [first.get_status(), first.get_job_statistics()]
again = search(4)
again.resume(0)
found["top"] = again.export_top_models(2, formatter="dict")
found["instance"] = again.export_top_models(1, formatter="instance")[0].hidden.out_features
found["models"] = len(again.strategy.list_models())
again.stop()
viewed = search(4)
viewed.view(port, non_blocking=True)
found["viewed"] = viewed.export_top_models(2, formatter="dict")
found["page"] = Experiment.connect(port).get_status()
viewed.stop()
print(json.dumps(found))
"""
TIMEOUT_S = 120.0


class Search:
    """Process of one search, in a folder with its space."""

    def __init__(self, shape: LocalShape, folder: Path, count: int) -> None:
        self.shape = shape
        self.folder = folder
        self.count = count
        self.gate = folder / "gate"
        (folder / "space.py").write_text(SPACE)
        (folder / "search.py").write_text(SEARCH)

    def start(self, act: str) -> subprocess.Popen[str]:
        root = str(self.folder / "searches")
        return subprocess.Popen(
            [sys.executable, "search.py", act, root, str(self.gate), str(self.count)],
            cwd=self.folder,
            env=self.shape.environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    def outcome(self, process: subprocess.Popen[str]) -> tuple[int, list[list[Any]]]:
        """Return the number of models that were counted, and those with a metric."""
        output, _ = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0
        found: dict[str, Any] = json.loads(output.splitlines()[-1])
        return found["counted"], found["models"]

    def trials(self) -> list[int]:
        """Return the process ids of the trials that run."""
        if not (self.shape.home / "endpoint.json").exists():
            return []  # the search has not started the services yet
        supervisor = int(self.shape.endpoint()["pid"])
        return [process.pid for process in named(supervisor, "nni.nas.execution")]

    def wait_for_trials(self) -> None:
        until(lambda: len(self.trials()) >= 3, TIMEOUT_S, "three trials")


@pytest.mark.timeout(240)
def test_search_survives_kills_of_a_trial_and_of_the_manager(
    shared_shape: LocalShape, tmp_path: Path
) -> None:
    search = Search(shared_shape, tmp_path, count=20)

    process = search.start("run")
    search.wait_for_trials()
    victim = search.trials()[0]
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in search.trials(), TIMEOUT_S, "the end of the killed trial")
    shared_shape.kill("manager")
    search.gate.touch()
    counted, models = search.outcome(process)

    assert counted == 20
    # The killed trial is a failed model, which has no metric.
    assert len({(width, activation) for width, activation, _ in models}) == 19
    assert all(metric == width for width, _, metric in models)


@pytest.mark.timeout(240)
def test_resumed_search_counts_each_candidate_once(
    shared_shape: LocalShape, tmp_path: Path
) -> None:
    search = Search(shared_shape, tmp_path, count=12)
    first = search.start("run")
    search.wait_for_trials()
    first.kill()
    first.communicate()
    search.gate.touch()
    until(lambda: not search.trials(), TIMEOUT_S, "the end of the trials that were left")

    counted, models = search.outcome(search.start("resume"))

    assert counted == 12
    assert len({(width, activation) for width, activation, _ in models}) == 12
    assert all(metric == width for width, _, metric in models)


@pytest.mark.timeout(240)
def test_stopped_search_goes_on_with_a_larger_budget(
    shared_shape: LocalShape, tmp_path: Path
) -> None:
    search = Search(shared_shape, tmp_path, count=3)
    search.gate.touch()
    first, _ = search.outcome(search.start("run"))
    search.count = 5

    counted, models = search.outcome(search.start("resume"))

    assert (first, counted) == (3, 5)
    assert len({(width, activation) for width, activation, _ in models}) == 5


@pytest.mark.timeout(240)
def test_search_killed_after_its_last_model_goes_on_with_a_larger_budget(
    shared_shape: LocalShape, tmp_path: Path
) -> None:
    search = Search(shared_shape, tmp_path, count=3)
    search.gate.touch()
    first = search.start("run_without_stop")
    first.communicate(timeout=TIMEOUT_S)
    search.count = 5

    counted, models = search.outcome(search.start("resume"))

    assert first.returncode == -signal.SIGKILL
    assert counted == 5
    assert len({(width, activation) for width, activation, _ in models}) == 5


@pytest.mark.timeout(240)
def test_methods_of_an_experiment_answer_about_the_trials_of_a_search(
    shared_shape: LocalShape, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    files = {"space.py": SPACE, "search.py": API}
    port = str(shared_shape.free_port())

    found = json.loads(run_search(shared_shape, tmp_path, files, str(gate), port))

    (payload,) = (tmp_path / "searches" / "payloads").iterdir()
    assert payload.stat().st_size > 100_000
    assert found["channel"].startswith(f"grpc://{shared_shape.endpoint()['grpc']}/")
    assert found["status"] == "DONE"
    assert found["statistics"] == {"SUCCEEDED": 2}
    widths = [sample["width"] for sample in found["samples"]]
    assert found["results"] == widths
    assert found["one"] == "SUCCEEDED"
    assert found["metrics"] == [widths[0] / 2, widths[0]]
    assert found["stopped"] == ["STOPPED", {"SUCCEEDED": 2}]
    assert found["models"] == 4
    assert found["top"] == found["viewed"]
    assert found["page"] == "VIEWED"
    assert found["instance"] == found["top"][0]["width"]


def test_port_of_a_search_that_is_in_use_is_refused_by_name(
    shared_shape: LocalShape, tmp_path: Path
) -> None:
    (tmp_path / "space.py").write_text(SPACE)
    (tmp_path / "api.py").write_text(API)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]

        ran = subprocess.run(
            [sys.executable, "api.py", str(tmp_path / "searches"), "gate", str(port)],
            cwd=tmp_path,
            env=shared_shape.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )

    assert ran.returncode == 1
    assert f"port {port} is in use" in ran.stderr
    entries = json.loads((tmp_path / "searches" / ".experiment").read_text())
    assert entries["api"]["status"] == "STOPPED"
