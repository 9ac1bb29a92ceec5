"""Training logic of one's own, as the documentation of NNI 2.x writes it."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nni
import nni.retiarii.evaluator.pytorch.lightning as pl
from nni.retiarii import basic_unit, serialize
from nni.retiarii.evaluator.pytorch.lightning import LightningModule
from tests.support.lightning_tasks import QUIET, reports_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


class Images(torch.utils.data.Dataset[Any]):
    """Random images with a label each."""

    def __init__(self, count: int) -> None:
        self.images = torch.randn(count, 28, 28, generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        return self.images[index], 0


@basic_unit
class AutoEncoder(LightningModule):
    """The module of the documentation, with its encoder searched for."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 28 * 28))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x, _ = batch
        x = x.view(x.size(0), -1)
        z = self.model(x)  # model is the one that is searched for
        x_hat = self.decoder(z)
        loss = F.mse_loss(x_hat, x)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, _ = batch
        x = x.view(x.size(0), -1)
        z = self.model(x)
        x_hat = self.decoder(z)
        loss = F.mse_loss(x_hat, x)
        self.log("val_loss", loss)

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=1e-3)

    def on_validation_epoch_end(self) -> None:
        nni.report_intermediate_result(self.trainer.callback_metrics["val_loss"].item())

    def teardown(self, stage: str) -> None:
        if stage == "fit":
            nni.report_final_result(self.trainer.callback_metrics["val_loss"].item())


def evaluator() -> Any:
    return pl.Lightning(
        AutoEncoder(),
        pl.Trainer(max_epochs=2, **QUIET),
        train_dataloader=pl.DataLoader(serialize(Images, 20), batch_size=10),
        val_dataloaders=pl.DataLoader(serialize(Images, 20), batch_size=10),
    )


def test_module_of_the_documentation_reports_its_loss() -> None:
    intermediates, finals = reports_of(lambda: evaluator().evaluate(nn.Linear(28 * 28, 3)))

    assert len(intermediates) == 2
    assert finals == [intermediates[-1]]


def test_module_of_the_documentation_travels_to_another_process() -> None:
    made = nni.load(nni.dump(evaluator()))

    assert isinstance(made.module, AutoEncoder)
    assert len(made.train_dataloaders.dataset) == 20
