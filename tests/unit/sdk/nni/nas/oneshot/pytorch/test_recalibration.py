from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.nas.evaluator.pytorch import DataLoader, Lightning, Trainer
from nni.nas.nn.pytorch import LayerChoice, ModelSpace
from nni.nas.oneshot.pytorch.recalibration import BatchNormRecalibration, recalibrate_batch_norm
from nni.testing.oneshot_strategies import LineModule, quiet_lightning
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import as_path

BATCHES = [torch.tensor([[1.0], [3.0]]), torch.tensor([[5.0], [11.0]])]


def statistics(norm: nn.Module) -> tuple[float, float]:
    mean, variance = norm.get_buffer("running_mean"), norm.get_buffer("running_var")
    return mean.item(), variance.item()


def test_statistics_are_averages_over_the_batches() -> None:
    norm = nn.BatchNorm1d(1)

    recalibrate_batch_norm(norm, BATCHES)

    # Means 2 and 8, unbiased variances 2 and 18.
    assert statistics(norm) == pytest.approx((5.0, 10.0))
    assert norm.num_batches_tracked is not None
    assert int(norm.num_batches_tracked) == 2


def test_statistics_before_do_not_matter() -> None:
    norm = nn.BatchNorm1d(1)
    norm(torch.full((4, 1), 100.0))

    recalibrate_batch_norm(norm, BATCHES)

    assert statistics(norm) == pytest.approx((5.0, 10.0))


def test_weights_modes_and_momentum_stay() -> None:
    network = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1, momentum=0.3), nn.Dropout(1.0))
    network[2].eval()
    before = {name: value.clone() for name, value in network.named_parameters()}
    modes = [module.training for module in network.modules()]

    recalibrate_batch_norm(network, BATCHES)

    assert all(torch.equal(before[name], value) for name, value in network.named_parameters())
    assert [module.training for module in network.modules()] == modes
    assert network[1].momentum == 0.3
    assert all(one.grad is None for one in network.parameters())


def test_dropout_is_switched_off() -> None:
    network = nn.Sequential(nn.Dropout(1.0), nn.BatchNorm1d(1))

    recalibrate_batch_norm(network, BATCHES)

    assert statistics(network[1]) == pytest.approx((5.0, 10.0))


def test_layer_that_no_batch_reaches_keeps_its_statistics() -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.BatchNorm1d(1), nn.BatchNorm1d(1)

        def forward(self, inputs: Tensor) -> Tensor:
            output: Tensor = self.used(inputs)
            return output

    network = Half()
    network.unused(BATCHES[1])
    before = statistics(network.unused)

    recalibrate_batch_norm(network, BATCHES)

    assert statistics(network.unused) == before
    assert statistics(network.used) == pytest.approx((5.0, 10.0))


def test_without_batches_nothing_changes() -> None:
    norm = nn.BatchNorm1d(1)
    norm(BATCHES[0])
    before = statistics(norm)

    assert recalibrate_batch_norm(norm, []) == 0

    assert statistics(norm) == before


def test_error_of_the_data_restores_modes_and_momentum() -> None:
    class Broken(list[Tensor]):
        def __iter__(self) -> Iterator[Tensor]:
            raise OSError

    norm = nn.BatchNorm1d(1).eval()

    with pytest.raises(OSError):  # noqa: PT011 - raised above, without a message
        recalibrate_batch_norm(norm, Broken())

    assert (norm.training, norm.momentum) == (False, 0.1)


def test_first_part_of_a_batch_is_the_input() -> None:
    norm = nn.BatchNorm1d(1)

    count = recalibrate_batch_norm(norm, [(batch, "label") for batch in BATCHES])

    assert count == 2


def test_mapping_needs_a_function() -> None:
    norm = nn.BatchNorm1d(1)
    batches = [{"inputs": batch} for batch in BATCHES]

    with pytest.raises(TypeError, match="pass a function as forward"):
        recalibrate_batch_norm(norm, batches)
    recalibrate_batch_norm(norm, batches, lambda batch: norm(batch["inputs"]))

    assert statistics(norm) == pytest.approx((5.0, 10.0))


def test_layers_without_statistics_are_left_alone() -> None:
    norm = nn.BatchNorm1d(1, track_running_stats=False)

    assert recalibrate_batch_norm(norm, BATCHES) == 2


class Normed(ModelSpace):
    """Scales its input by 1 or 10 before the normalization, which all paths share."""

    def __init__(self) -> None:
        super().__init__()
        first, second = nn.Linear(2, 1), nn.Linear(2, 1)
        with torch.no_grad():
            second.weight.copy_(10 * first.weight)
        self.layer = LayerChoice([first, second], label="layer")
        self.norm = nn.BatchNorm1d(1)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.norm(self.layer(inputs))
        return output


def test_frozen_candidates_of_a_supernet_get_statistics_of_their_own() -> None:
    space = Normed()
    as_path(space)
    batches = [torch.randn(64, 2, generator=torch.Generator().manual_seed(0))]

    deviations = []
    for layer in (0, 1):
        network = space.freeze({"layer": layer})
        recalibrate_batch_norm(network, batches)
        deviations.append(network.eval()(batches[0]).std().item())

    assert deviations == pytest.approx([1.0, 1.0], rel=1e-2)


def evaluator(callback: BatchNormRecalibration, *, trains: bool) -> Lightning:
    """Return an evaluator that validates, or trains for no epoch and validates."""
    data = torch.utils.data.TensorDataset(torch.ones(4, 2), torch.ones(4, 1))
    trainer = Trainer(
        max_epochs=1,
        callbacks=[callback],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader: Any = DataLoader(data, batch_size=2)
    return Lightning(LineModule(), trainer, loader if trains else None, loader)


@pytest.mark.parametrize(("trains", "number"), [(False, 2), (True, 0)])
def test_callback_reads_the_data_before_a_validation_alone(trains: bool, number: int) -> None:
    read: list[int] = []

    class Loader:
        def __iter__(self) -> Iterator[Tensor]:
            for index in range(5):
                read.append(index)
                yield torch.randn(4, 2)

    network = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1))

    with quiet_lightning():
        evaluator(BatchNormRecalibration(Loader(), 2), trains=trains).evaluate(network)

    assert read == list(range(number))
    assert network[0].num_batches_tracked == 2  # of the data, or of the training
