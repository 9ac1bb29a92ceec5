"""Architecture search whose strategy is hosted by the NAS service, with kills in mid-search."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from nni.experiment.client import ManagerClient
from nni.experiment.local_shape import running_endpoint
from nni.nas.experiment.remote_exploration import RemoteExploration, list_explorations
from nni_proto.experiment.v1 import experiment_pb2
from nni_wire.values import from_value
from tests.support.local_shape import LocalShape
from tests.support.nnictl import shared_shape
from tests.support.processes import named
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


def evaluate(model, gate):
    while not pathlib.Path(gate).exists():
        time.sleep(0.02)
    nni.report_final_result(float(model.hidden.out_features))
"""
BROKEN = """\
import os

if "NNI_LOG_DIRECTORY" in os.environ:  # in the process of the strategy, but not in the client
    raise ImportError("no layer here")
"""
CREATE = """\
import sys
from space import Net, evaluate
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperimentConfig
from nni.nas.experiment.engines import create_space
from nni.nas.experiment.explorations import create_exploration
from nni.nas.strategy import Random

gate, count = sys.argv[1], int(sys.argv[2])
space, evaluator = Net(), FunctionalEvaluator(evaluate, gate=gate)
strategy = Random(seed=0)
config = NasExperimentConfig(
    "ts", "simplified", "local", trial_concurrency=3, max_trial_number=count
).canonical(space, evaluator, strategy)
print("exploration", create_exploration(config, create_space(config, space, evaluator), strategy))
"""
SEARCH = """\
import json, sys
from space import Net, evaluate
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.strategy import RegularizedEvolution

act, gate, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
config = NasExperimentConfig(
    "service", "simplified", "local", trial_concurrency=2, max_trial_number=count,
    worker_reuse=True, save_models=True,
)
strategy = RegularizedEvolution(population_size=3, sample_size=2, seed=0)
search = NasExperiment(
    Net(), FunctionalEvaluator(evaluate, gate=gate), strategy, config, id="hosted"
)
assert getattr(search, act)(port=0)
best = search.export_top_models(top_k=2, formatter="dict")
counted = len(search.strategy.list_models(sort=False))
search.stop()
print(json.dumps({"best": best, "counted": counted}))
"""
ONE_SHOT = """\
import os, pathlib, signal
import pytorch_lightning, torch
from torch import nn
import nni
from nni.nas.evaluator.pytorch import Classification, DataLoader
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.nn.pytorch import LayerChoice, ModelSpace
from nni.nas.strategy import DARTS

EPOCHS = pathlib.Path(__file__).parent / "epochs"


class Net(ModelSpace):
    def __init__(self):
        super().__init__()
        layers = {"line": nn.Linear(4, 2), "plain": nn.Linear(4, 2, bias=False)}
        self.branch = LayerChoice(layers, label="branch")

    def forward(self, inputs):
        return self.branch(inputs)


@nni.trace
class Points(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.full((4,), index / 16), index % 2


@nni.trace
class KilledOnce(pytorch_lightning.Callback):
    def on_train_epoch_start(self, trainer, module):
        with EPOCHS.open("a") as file:
            file.write(f"{trainer.current_epoch}\\n")
        if EPOCHS.read_text() == "0\\n1\\n":
            os.kill(os.getpid(), signal.SIGKILL)


def build():
    evaluator = Classification(
        train_dataloaders=DataLoader(Points(), 8), val_dataloaders=DataLoader(Points(), 8),
        num_classes=2, max_epochs=3, callbacks=[KilledOnce()], accelerator="cpu", logger=False,
        enable_checkpointing=False, enable_progress_bar=False,
    )
    config = NasExperimentConfig("service", retry_failed_trials=1)
    return NasExperiment(Net(), evaluator, DARTS(), config)
"""
TIMEOUT_S = 120.0
DONE = experiment_pb2.EXPERIMENT_STATE_DONE


def process_of(shape: LocalShape, word: str) -> int:
    """Return the first process of an installation whose command has a word; 0: none."""
    if not (shape.home / "endpoint.json").exists():
        return 0
    supervisor = int(shape.endpoint()["pid"])
    return next((process.pid for process in named(supervisor, word)), 0)


class Exploration:
    """Exploration of the installation, created by a script of a user."""

    def __init__(self, shape: LocalShape, folder: Path, count: int, space: str = SPACE) -> None:
        self.shape = shape
        self.gate = folder / "gate"
        (folder / "space.py").write_text(space)
        (folder / "create.py").write_text(CREATE)
        command = f"{sys.executable} create.py {self.gate} {count}"
        written = shape.run(["bash", "-c", f"cd {folder} && {command}"]).stdout
        found = re.search(r"exploration (\w+)", written)
        assert found is not None, written
        self.id = found.group(1)

    def process(self, word: str) -> int:
        """Return the first process of the installation whose command has a word; 0: none."""
        return process_of(self.shape, word)

    def kill(self, word: str) -> None:
        """Kill a process once it is there; wait until another one is."""
        before = until(lambda: self.process(word), TIMEOUT_S, word)
        os.kill(before, signal.SIGKILL)
        until(lambda: self.process(word) not in {0, before}, TIMEOUT_S, f"another {word}")

    def ended(self, client: ManagerClient) -> str:
        """Wait until all trials have ended; return the state."""
        states = (DONE, experiment_pb2.EXPERIMENT_STATE_ERROR)
        found = client.wait(self.id, states)
        return experiment_pb2.ExperimentState.Name(found.state)

    def samples(self, client: ManagerClient) -> list[tuple[object, object]]:
        """Return width and activation of each trial with a result, which is its width."""
        found = []
        for item in client.export(self.id):
            sample = from_value(item.parameters)["sample"]
            assert from_value(item.value) == sample["width"]
            found.append((sample["width"], sample["activation"]))
        return found


@pytest.mark.timeout(300)
def test_search_survives_kills_of_strategy_service_and_manager(
    shared_shape: LocalShape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_HOME", str(shared_shape.home))
    search = Exploration(shared_shape, tmp_path, count=12)

    until(lambda: search.process("nni.nas.execution"), TIMEOUT_S, "a trial")
    search.kill("nni.nas.host")
    search.kill("svc_nas")
    until(lambda: search.process("nni.nas.host"), TIMEOUT_S, "the strategy of the next service")
    shared_shape.kill("manager")
    search.gate.touch()
    with ManagerClient(running_endpoint()) as client:
        state = search.ended(client)
        samples = search.samples(client)

    assert state == "EXPERIMENT_STATE_DONE"
    assert len(samples) == len(set(samples)) == 12


@pytest.mark.timeout(240)
def test_class_that_cannot_be_imported_ends_the_exploration_with_the_reason(
    shared_shape: LocalShape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_HOME", str(shared_shape.home))
    search = Exploration(shared_shape, tmp_path, count=2, space=BROKEN + SPACE)

    with ManagerClient(running_endpoint()) as client:
        state = search.ended(client)
        reason = " ".join(client.get(search.id).experiment.errors)

    assert state == "EXPERIMENT_STATE_ERROR"
    assert "no layer here" in reason


@pytest.mark.timeout(240)
def test_search_goes_on_without_its_client_which_resumes_it(
    shared_shape: LocalShape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_HOME", str(shared_shape.home))
    (tmp_path / "space.py").write_text(SPACE)
    (tmp_path / "search.py").write_text(SEARCH)
    gate = tmp_path / "gate"

    def client(act: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "search.py", act, str(gate), "8"],
            cwd=tmp_path,
            env=shared_shape.environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    first = client("run")
    until(lambda: process_of(shared_shape, "nni.nas.execution"), TIMEOUT_S, "a trial")
    first.kill()
    first.communicate()
    gate.touch()
    output, _ = client("resume").communicate(timeout=TIMEOUT_S)

    found = json.loads(output.splitlines()[-1])
    assert found["counted"] == 8
    assert found["best"][0]["width"] >= found["best"][1]["width"]
    with ManagerClient(running_endpoint()) as connection:
        newest = list_explorations(connection)[0].id
        RemoteExploration(newest, connection).fetch(tmp_path / "best")
    weights = load_file(tmp_path / "best" / "weights.safetensors")
    assert len(weights["hidden.weight"]) == found["best"][0]["width"]


@pytest.mark.timeout(600)
def test_killed_one_shot_search_goes_on_after_its_last_epoch(
    shared_shape: LocalShape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_HOME", str(shared_shape.home))
    (tmp_path / "search.py").write_text(ONE_SHOT)
    command = f"cd {tmp_path} && nnictl nas create search:build"

    written = shared_shape.run(["bash", "-c", command], timeout_s=2 * TIMEOUT_S).stdout
    found = re.search(r"exploration (\w+)", written)
    assert found is not None, written
    with ManagerClient(running_endpoint()) as client:
        ended = client.wait(found[1], (DONE, experiment_pb2.EXPERIMENT_STATE_ERROR))
        (best,) = RemoteExploration(found[1], client).top()

    assert ended.state == DONE
    assert best.sample["branch"] in {"line", "plain"}
    # Epoch 1 was interrupted by the kill, and only this one was trained again.
    assert (tmp_path / "epochs").read_text().split() == ["0", "1", "1", "2"]
