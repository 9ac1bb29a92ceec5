"""Storage without pickle: a smaller model in a fresh process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from nni.compression.speedup import ModelSpeedup, load_smaller, save_smaller
from nni.compression.speedup.pruning import prune
from nni.compression.speedup.report import SpeedupReport
from tests.unit.sdk.nni.compression.models import NAMES, build

ROOT = Path(__file__).parents[6]


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_model_computes_the_same(name: str, tmp_path: Path) -> None:
    model, inputs = build(name)
    smaller, report = prune(model, inputs, 0.5)

    save_smaller(smaller, report, tmp_path / "folder")
    loaded = load_smaller(build(name)[0], tmp_path / "folder")

    assert torch.equal(loaded(inputs), smaller(inputs))
    assert all(one.is_contiguous() for one in loaded.state_dict().values())


def test_it_is_loaded_in_a_fresh_process_from_tensors_and_json(tmp_path: Path) -> None:
    model, tokens = build("windows")
    smaller, report = prune(model, tokens, 0.5)
    save_smaller(smaller, report, tmp_path)
    code = (
        "import sys; from nni.compression.speedup import load_smaller;"
        "from tests.unit.sdk.nni.compression.models import build;"
        "model, tokens = build('windows');"
        "print(float(load_smaller(model, sys.argv[1])(tokens).detach().double().sum()))"
    )

    printed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip

    assert float(printed) == pytest.approx(float(smaller(tokens).detach().double().sum()), rel=1e-6)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["model.safetensors", "plan.json"]


def test_a_bias_that_absorbed_constants_is_stored(tmp_path: Path) -> None:
    def make() -> nn.Sequential:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(2, 4), nn.Sigmoid(), nn.Linear(4, 3, bias=False)).eval()

    model = make()
    mask = torch.ones(4, 2)
    mask[0] = 0
    speedup = ModelSpeedup(model, torch.randn(3, 2), {"0": {"weight": mask}})
    speedup.speedup_model()
    assert speedup.report is not None

    save_smaller(model, speedup.report, tmp_path)

    assert torch.equal(load_smaller(make(), tmp_path)(torch.ones(1, 2)), model(torch.ones(1, 2)))


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    report = SpeedupReport(error=0.0, parameters_before=1, parameters_after=1)
    save_smaller(nn.Linear(1, 1, bias=False), report, tmp_path)

    with pytest.raises(ValueError, match="lacks the tensor 'bias'"):
        load_smaller(nn.Linear(1, 1), tmp_path)
    save_smaller(nn.Sequential(nn.ReLU(), nn.Linear(1, 1)), report, tmp_path)
    with pytest.raises(ValueError, match="no module '1' for the tensor"):
        load_smaller(nn.Sequential(nn.ReLU()), tmp_path)
    plan = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "plan.json").write_text(json.dumps({**plan, "version": 2}))
    with pytest.raises(ValueError, match="version 2"):
        load_smaller(nn.Sequential(nn.ReLU()), tmp_path)
    (tmp_path / "plan.json").write_text(json.dumps({**plan, "modules": {"a": {}}}))
    with pytest.raises(ValueError, match="no module 'a'"):
        load_smaller(nn.Sequential(nn.ReLU()), tmp_path)
