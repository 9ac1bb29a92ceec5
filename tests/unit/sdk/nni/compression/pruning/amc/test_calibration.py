import pytest
import torch
from torch import nn

from nni.compression.pruning.amc.calibration import InputSamples, is_pointwise, refitted


def test_fitted_weights_are_better_than_masked_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(100, 3, generator=generator) @ torch.randn(3, 6, generator=generator)
    inputs = inputs + 0.1 * torch.randn(100, 6, generator=generator)
    weight = torch.randn(4, 6, generator=generator)
    kept = torch.tensor([True, True, True, True, False, False])

    found = refitted(weight, inputs, kept)

    errors = [float((inputs @ (one - weight).T).norm()) for one in (found, weight * kept)]
    assert errors[0] < 0.3 * errors[1]
    assert not found[:, ~kept].any()
    # The normal equations hold: what is left of the error is orthogonal to the inputs.
    rest = inputs[:, kept].T @ (inputs @ (found - weight).T)
    assert rest.abs().max() < 1e-3


def test_too_few_points_change_the_weights_least() -> None:
    weight = torch.ones(1, 3)
    inputs = torch.tensor([[1.0, 0.0, 1.0]])

    found = refitted(weight, inputs, torch.tensor([True, True, False]))

    torch.testing.assert_close(found, torch.tensor([[2.0, 1.0, 0.0]]))


@pytest.mark.parametrize(
    ("layer", "shape", "rows"),
    [
        (nn.Conv2d(3, 2, 1, stride=2), (4, 3, 6, 6), 4 * 5),
        (nn.Linear(3, 2), (4, 3), 4),
        (nn.Linear(3, 2), (4, 7, 3), 4 * 5),
    ],
)
def test_points_are_inputs_of_the_layer(
    layer: nn.Module, shape: tuple[int, ...], rows: int
) -> None:
    batch = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    samples = InputSamples({"a": layer}, 5, torch.Generator().manual_seed(0))

    samples.collect([batch], layer)

    found = samples.of("a")
    assert found is not None
    assert found.shape == (rows, 3)
    places = batch[:, :, ::2, ::2] if batch.dim() == 4 else batch
    all_rows = places.movedim(1, -1) if batch.dim() == 4 else places
    known = {tuple(row) for row in all_rows.reshape(-1, 3).double().tolist()}
    assert all(tuple(row) in known for row in found.tolist())


def test_a_layer_that_did_not_run_has_no_points() -> None:
    samples = InputSamples({"a": nn.Linear(1, 1)}, 5, torch.Generator())

    samples.collect([], print)

    assert samples.of("a") is None
    assert samples.of("b") is None


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.Conv2d(2, 2, 1), True),
        (nn.Conv2d(2, 2, 3), False),
        (nn.Conv2d(2, 2, 1, groups=2), False),
        (nn.Conv2d(2, 2, 1, padding=1), False),
        (nn.Linear(2, 2), True),
        (nn.ReLU(), False),
    ],
)
def test_pointwise_layers_read_one_place(layer: nn.Module, expected: bool) -> None:
    assert is_pointwise(layer) is expected
