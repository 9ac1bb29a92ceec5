from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.nas.evaluator.pytorch import Classification
from nni.nas.evaluator.pytorch.onnx_file import export_network, output_path
from tests.support.lightning_tasks import QUIET, loader, network, reports_of

onnx: Any = pytest.importorskip("onnx")


class Unexportable(nn.Module):
    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.sum() > 0:
            raise ValueError("depends on the data")
        return inputs


def test_the_file_lies_in_the_folder_of_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_OUTPUT_DIR", str(tmp_path))

    assert output_path(True) == tmp_path / "model.onnx"
    assert output_path("own.onnx") == Path("own.onnx")
    assert output_path(False) is output_path(None) is None


def test_a_network_is_written_and_keeps_its_mode(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 2), nn.Dropout())
    model[1].eval()

    export_network(model, torch.zeros(3, 4), tmp_path / "new" / "model.onnx")

    written = onnx.load(tmp_path / "new" / "model.onnx")
    assert len(written.graph.initializer) == 2
    assert (model.training, model[1].training) == (True, False)


def test_a_network_that_cannot_be_converted_warns(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match=r"could not be written to model\.onnx in ONNX"):
        export_network(Unexportable(), torch.zeros(1, 4), tmp_path / "model.onnx")

    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning")
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_the_first_step_of_validation_writes_the_file(tmp_path: Path) -> None:
    evaluator = Classification(
        num_classes=2,
        val_dataloaders=loader(),
        export_onnx=tmp_path / "model.onnx",
        **QUIET,
    )

    reports_of(lambda: evaluator.evaluate(network()))

    assert (tmp_path / "model.onnx").is_file()
