"""Counts of operations and parameters against numbers worked out by hand."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.compression.speedup import ModelSpeedup
from nni.compression.utils import count_flops_params


class NaiveModel(nn.Module):
    """The model of NNI's quick start."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 20, 5, 1)
        self.conv2 = nn.Conv2d(20, 50, 5, 1)
        self.fc1 = nn.Linear(4 * 4 * 50, 500)
        self.fc2 = nn.Linear(500, 10)

    def forward(self, image: Tensor) -> Tensor:
        found = functional.max_pool2d(functional.relu6(self.conv1(image)), 2, 2)
        found = functional.max_pool2d(functional.relu6(self.conv2(found)), 2, 2)
        return self.fc2(functional.relu6(self.fc1(found.flatten(1))))


class Vgg16(nn.Module):
    """VGG-16 for CIFAR, as the published results use it."""

    def __init__(self) -> None:
        super().__init__()
        widths: list[int | None] = [64, 64, None, 128, 128, None, 256, 256, 256, None]
        widths += [512, 512, 512, None, 512, 512, 512]
        layers: list[nn.Module] = []
        last = 3
        for width in widths:
            if width is None:
                layers.append(nn.MaxPool2d(2))
            else:
                layers += [nn.Conv2d(last, width, 3, padding=1, bias=False),
                           nn.BatchNorm2d(width), nn.ReLU()]  # fmt: skip
                last = width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 10)
        )

    def forward(self, image: Tensor) -> Tensor:
        return self.classifier(functional.avg_pool2d(self.features(image), 2).flatten(1))


def lowest_filters(model: nn.Module, sparsity: float) -> dict[str, dict[str, Tensor]]:
    """Return masks of the filters with the smallest L1 norm of every convolution."""
    masks = {}
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Conv2d):
            order = layer.weight.detach().abs().flatten(1).sum(1).argsort()
            mask = torch.ones_like(layer.weight)
            mask[order[: int(len(order) * sparsity)]] = 0
            masks[name] = {"weight": mask}
    return masks


@pytest.mark.claim("compression", 72)
def test_counts_of_the_quick_start_before_masked_and_after() -> None:
    model, shape = NaiveModel(), (1, 1, 28, 28)
    mask = torch.ones_like(model.conv1.weight)
    mask[:10] = 0
    masks = {"conv1": {"weight": mask, "bias": mask[:, 0, 0, 0]}}

    dense = count_flops_params(model, shape, verbose=False)
    full = count_flops_params(model, shape, verbose=False, mode="full")
    model.conv1.weight.data *= mask
    masked = count_flops_params(model, shape, verbose=False)
    ModelSpeedup(model, torch.randn(2, 1, 28, 28), masks).speedup_model()
    smaller = count_flops_params(model, shape, verbose=False)

    assert (dense[:2], full[0]) == ((2_293_000, 431_080), 2_308_230)
    assert masked[0] == 2_149_000
    assert smaller[:2] == (1_349_000, 418_320)


@pytest.mark.claim("compression", 74)
def test_counts_of_vgg16() -> None:
    model, shape = Vgg16(), (1, 3, 32, 32)

    assert count_flops_params(model, shape, verbose=False, mode="full")[:2] == (
        314_018_314,
        14_987_722,
    )
    assert count_flops_params(model, shape, verbose=False)[1] == 14_978_250


@pytest.mark.claim("compression", 73)
@pytest.mark.parametrize(
    ("sparsity", "params", "flops"),
    [
        pytest.param(0.1, 12187336, 256252606, marks=pytest.mark.slow),
        pytest.param(0.2, 9660216, 203049930, marks=pytest.mark.slow),
        pytest.param(0.3, 7435417, 155477470, marks=pytest.mark.slow),
        pytest.param(0.4, 5493954, 114721578, marks=pytest.mark.slow),
        (0.5, 3820010, 79155722),
        pytest.param(0.6, 2478632, 51618494, marks=pytest.mark.slow),
        pytest.param(0.7, 1420600, 29455306, marks=pytest.mark.slow),
        (0.8, 658553, 13290974),
        pytest.param(0.9, 186178, 3574570, marks=pytest.mark.slow),
        pytest.param(0.95, 58680, 1050570, marks=pytest.mark.slow),
        (0.975, 23408, 329918),
    ],
)
def test_vgg16_has_the_published_size_after_speedup(
    sparsity: float, params: int, flops: int
) -> None:
    torch.manual_seed(0)
    model = Vgg16().eval()

    speedup = ModelSpeedup(model, torch.randn(2, 3, 32, 32), lowest_filters(model, sparsity))
    speedup.speedup_model()

    found = count_flops_params(model, (1, 3, 32, 32), verbose=False, mode="full")
    assert sum(one.numel() for one in model.parameters()) == params
    assert found[0] == flops
    assert speedup.report is not None
    assert speedup.report.error <= 1e-4


@pytest.mark.claim("compression", 84)
def test_counts_of_single_layers() -> None:
    small, wide = nn.Conv2d(3, 5, 1), nn.Conv2d(5, 5, 1)

    assert count_flops_params(small, (1, 3, 2, 2), verbose=False)[:2] == (60, 20)
    assert count_flops_params(wide, (1, 5, 2, 2), verbose=False)[:2] == (100, 30)
    assert count_flops_params(small, (4, 3, 2, 2), verbose=False)[0] == 60
    assert count_flops_params(small, torch.zeros(1, 3, 2, 2), verbose=False)[0] == 60
    assert count_flops_params(nn.LSTMCell(10, 20), (1, 10), verbose=False)[0] == 2_560


@pytest.mark.claim("compression", 85)
def test_custom_counts_shared_modules_and_flags() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, features: Tensor) -> Tensor:
            return self.layer(self.layer(features))

    def custom(module: nn.Module, inputs: Any, output: Any) -> dict[str, Any]:
        return {"flops": 7, "params": 5, "weight_shape": None}

    model = Twice().train()

    flops, params, results = count_flops_params(model, (1, 3), verbose=False)
    own = count_flops_params(model, (1, 3), {nn.Linear: custom}, verbose=False)

    assert (flops, params, len(results)) == (18, 12, 2)
    assert own[:2] == (14, 5)
    assert model.training
    assert model.layer.training


@pytest.mark.parametrize(
    ("layer", "shape", "flops"),
    [
        (nn.ConvTranspose2d(3, 4, 2, stride=2), (1, 3, 2, 2), 4 * 16 * 4 * 3),
        (nn.Conv2d(4, 8, 3, groups=2), (1, 4, 3, 3), 8 * 2 * 9),
        (nn.Linear(3, 4), (2, 5, 3), 5 * 12),
        (nn.GRUCell(2, 3), (1, 2), 3 * (3 * 5 + 3) + 12),
        (nn.LSTM(2, 3, batch_first=True), (1, 5, 2), 5 * (4 * (3 * 5 + 3) + 12)),
        (nn.LSTM(2, 3, batch_first=True), (5, 2), 5 * (4 * (3 * 5 + 3) + 12)),
    ],
)
def test_formulas_by_layer(layer: nn.Module, shape: tuple[int, ...], flops: int) -> None:
    assert count_flops_params(layer, shape, verbose=False)[0] == flops


def test_full_mode_adds_bias_norms_and_pools() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 2, 1),
        nn.BatchNorm2d(2),
        nn.LeakyReLU(),
        nn.AvgPool2d(2),
        nn.Upsample(scale_factor=2),
    )

    results = count_flops_params(model, (1, 1, 2, 2), verbose=False, mode="full")[2]

    assert [one["flops"] for one in results] == [16, 16, 8, 2, 8]


def test_a_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    count_flops_params(nn.Linear(3, 4), (1, 3))

    assert capsys.readouterr().out.splitlines()[-1].split() == ["total", "12", "16"]


def test_unknown_modes_are_refused() -> None:
    with pytest.raises(AssertionError, match="mode must be one of"):
        count_flops_params(nn.Linear(1, 1), (1, 1), mode="half")
