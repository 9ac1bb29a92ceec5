"""From masks to smaller layers, as NNI documents it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.compression.speedup import EmptyLayerError, ModelSpeedup
from nni.compression.speedup.model_speedup import Masks
from nni.compression.speedup.shrinking import outputs_of, relative_error
from tests.unit.sdk.nni.compression.models import build, randomised


class NaiveModel(nn.Module):
    """The model of NNI's quick start."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 20, 5, 1)
        self.conv2 = nn.Conv2d(20, 50, 5, 1)
        self.fc1 = nn.Linear(4 * 4 * 50, 500)
        self.fc2 = nn.Linear(500, 10)

    def forward(self, image: Tensor) -> Tensor:
        found = functional.max_pool2d(functional.relu(self.conv1(image)), 2, 2)
        found = functional.max_pool2d(functional.relu(self.conv2(found)), 2, 2)
        return self.fc2(functional.relu(self.fc1(found.view(-1, 800))))


def filter_mask(
    layer: nn.Module, dead: list[int], *, bias: bool = True
) -> dict[str, Tensor | None]:
    """Return a mask of output channels."""
    assert isinstance(layer.weight, Tensor)
    weight = torch.ones_like(layer.weight)
    weight[dead] = 0
    kept = torch.ones(len(weight))
    kept[dead] = 0
    return {"weight": weight, "bias": kept if bias and layer.bias is not None else None}


@pytest.mark.claim("compression", 71)
def test_half_of_conv1_of_the_quick_start_goes() -> None:
    model = randomised(NaiveModel())
    inputs = torch.randn(2, 1, 28, 28)
    masks = {"conv1": filter_mask(model.conv1, list(range(0, 20, 2)))}
    for name, mask in masks["conv1"].items():
        assert mask is not None
        model.conv1.get_parameter(name).data *= mask
    expected = outputs_of(model, inputs)

    smaller = ModelSpeedup(model, torch.randn(2, 1, 28, 28), masks).speedup_model()

    assert smaller is model
    assert smaller.conv1.weight.shape == (10, 1, 5, 5)
    assert smaller.conv2.weight.shape == (50, 10, 5, 5)
    assert smaller.fc1.weight.shape == (500, 800)
    assert relative_error(expected, outputs_of(model, inputs)) < 1e-5


@pytest.mark.claim("compression", 75)
def test_a_residual_block_keeps_the_union_of_the_channels_of_its_branches() -> None:
    model, inputs = build("residual")
    masks = {
        "stem.0": filter_mask(model.stem[0], [0, 1, 2]),
        "first.1": filter_mask(model.first[1], [1, 2, 3]),
        "second.1": filter_mask(model.second[1], [1, 2, 4, 5]),
    }

    speedup = ModelSpeedup(model, inputs, masks)
    speedup.speedup_model()

    assert model.stem[0].out_channels == 6
    assert model.head.in_features == 6
    assert speedup.report is not None
    assert speedup.report.error <= 1e-4
    assert {(one.layer, one.count) for one in speedup.report.kept} == {
        ("stem.0", 1),
        ("first.1", 1),
        ("second.1", 2),
    }


@pytest.mark.claim("compression", 76)
def test_groups_of_a_depthwise_convolution_shrink_with_its_channels() -> None:
    model, inputs = build("squeeze-excite")
    masks = {
        "stem.0": filter_mask(model.stem[0], [1, 5]),
        "depthwise.0": filter_mask(model.depthwise[0], [1, 5]),
    }

    speedup = ModelSpeedup(model, inputs, masks)
    speedup.speedup_model()

    assert model.depthwise[0].groups == 6
    assert model.expand.out_channels == 6
    assert speedup.report is not None
    assert speedup.report.error <= 1e-4


@pytest.mark.claim("compression", 77)
def test_wrong_requests_are_refused_and_fine_grained_masks_change_no_shape() -> None:
    model, inputs = build("plain")
    conv = model.conv1[0]
    everything = {"conv1.0": filter_mask(conv, list(range(8)))}
    sparse = torch.ones_like(conv.weight)
    sparse[:, 0] = 0
    before = {name: value.shape for name, value in model.state_dict().items()}

    with pytest.raises(EmptyLayerError, match=r"conv1\.0"):
        ModelSpeedup(model, inputs, everything).speedup_model()
    with pytest.raises(ValueError, match="must be above 1"):
        ModelSpeedup(model, inputs, everything, confidence=1)
    ModelSpeedup(model, inputs, {"conv1.0": {"weight": sparse}}).speedup_model()

    assert {name: value.shape for name, value in model.state_dict().items()} == before


@pytest.mark.claim("compression", 77)
def test_wrapped_models_are_refused() -> None:
    class Wrapper(nn.Module):
        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self.module = module
            self.register_buffer("weight_mask", torch.ones(2, 2))

        def forward(self, features: Tensor) -> Tensor:
            return self.module(features)

    model = nn.Sequential(Wrapper(nn.Linear(2, 2)))

    with pytest.raises(ValueError, match="unwrap_model"):
        ModelSpeedup(model, torch.zeros(1, 2), {}).speedup_model()


@pytest.mark.claim("compression", 78)
def test_masks_on_a_norm_shrink_the_convolutions_around_it() -> None:
    model, inputs = build("plain")
    keep = torch.ones(8)
    keep[[2, 3]] = 0

    ModelSpeedup(model, inputs, {"conv1.1": {"weight": keep, "bias": keep}}).speedup_model()

    assert model.conv1[0].out_channels == 6
    assert model.conv1[1].num_features == 6
    assert model.conv2[0].in_channels == 6


@pytest.mark.claim("compression", 79)
def test_masks_from_a_file_are_masks_from_a_dict(tmp_path: Path) -> None:
    shapes = []
    for form in ("dict", "file"):
        model, inputs = build("plain")
        masks: Masks = {"conv1.0": filter_mask(model.conv1[0], [0, 7])}
        torch.save(masks, tmp_path / "masks.pth")
        given = masks if form == "dict" else str(tmp_path / "masks.pth")
        ModelSpeedup(model, inputs, masks_file=given).speedup_model()
        shapes.append({name: value.shape for name, value in model.state_dict().items()})

    assert shapes[0] == shapes[1]
    with pytest.raises(FileNotFoundError, match="missing"):
        ModelSpeedup(model, inputs, str(tmp_path / "missing.pth"))


def test_input_channels_that_no_weight_reads_go_with_their_filter() -> None:
    model, inputs = build("plain")
    columns = torch.ones_like(model.conv2[0].weight)
    columns[:, [0, 3]] = 0

    speedup = ModelSpeedup(model, inputs, {"conv2.0": {"weight": columns}})
    speedup.speedup_model()

    assert model.conv1[0].out_channels == 6
    assert speedup.report is not None
    assert speedup.report.error <= 1e-4


@pytest.mark.parametrize("bias", [True, False])
def test_a_constant_is_absorbed_by_the_bias_of_the_next_layer(bias: bool) -> None:
    torch.manual_seed(0)
    model = randomised(
        nn.Sequential(nn.Linear(4, 6), nn.Sigmoid(), nn.Linear(6, 3, bias=bias), nn.Linear(3, 2))
    )
    masks = {"0": filter_mask(model[0], [1, 4], bias=False)}

    speedup = ModelSpeedup(model, torch.randn(3, 4), masks)
    speedup.speedup_model()

    assert model[0].out_features == 4
    assert model[2].bias is not None
    assert speedup.report is not None
    assert speedup.report.error <= 1e-5


def test_a_constant_before_a_padded_convolution_stays_and_is_listed() -> None:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 6, 1), nn.Sigmoid(), nn.Conv2d(6, 4, 3, padding=1)]
    model = randomised(nn.Sequential(*layers))
    masks = {"0": filter_mask(model[0], [1])}

    speedup = ModelSpeedup(model, torch.randn(1, 3, 6, 6), masks)
    speedup.speedup_model()

    assert model[0].out_channels == 6
    assert speedup.report is not None
    [kept] = speedup.report.kept
    assert (kept.layer, kept.count) == ("0", 1)
    assert "convolution in 2" in kept.reason


def test_outputs_keep_their_size() -> None:
    model, inputs = build("plain")
    masks = {"fc": filter_mask(model.fc, [0, 1])}

    speedup = ModelSpeedup(model, inputs, masks)
    speedup.speedup_model()

    assert model(inputs).shape == (2, 5)
    assert speedup.report is not None
    assert "output of the model" in str(speedup.report.kept[0])


def test_flags_and_statistics_stay() -> None:
    model, inputs = build("residual")
    model.train()
    statistics = model.second[2].running_mean.clone()

    ModelSpeedup(model, inputs, {"first.0.0": filter_mask(model.first[0][0], [0])}).speedup_model()

    assert model.first[0][1].training
    assert torch.equal(model.second[2].running_mean, statistics)


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ({"missing": {"weight": torch.ones(1)}}, "'missing'"),
        ({"fc": {"weight": torch.ones(1)}}, r"fc\.weight has the shape \(1,\)"),
    ],
)
def test_masks_that_do_not_fit_are_refused(masks: Masks, message: str) -> None:
    model, inputs = build("plain")

    with pytest.raises(ValueError, match=message):
        ModelSpeedup(model, inputs, masks).speedup_model()


def test_arguments_are_checked() -> None:
    model, inputs = build("plain")

    with pytest.raises(TypeError, match="masks_or_file"):
        ModelSpeedup(model, inputs)
    with pytest.raises(ValueError, match="batch_dim must be 0"):
        ModelSpeedup(model, inputs, {}, batch_dim=1)
    with pytest.raises(ValueError, match="no tensor"):
        ModelSpeedup(model, [], {}).speedup_model()


def test_a_layer_of_which_nothing_is_read_keeps_one_channel() -> None:
    """The masks leave channels to each layer, but none that the next one reads; all is constant."""
    model = randomised(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 5), nn.Linear(5, 2)))
    columns = torch.ones_like(model[2].weight)
    columns[:, 2:] = 0
    masks = {"0": filter_mask(model[0], [0, 1]), "2": {"weight": columns, "bias": None}}
    speedup = ModelSpeedup(model, torch.randn(2, 3), masks)

    smaller: Any = speedup.speedup_model()

    assert smaller[0].weight.shape == (1, 3)
    assert smaller[2].weight.shape == (1, 1)
    assert speedup.report is not None
    assert speedup.report.error <= 1e-6


class Guarded(nn.Module):
    """Model that refuses values that are not finite."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, vector: Tensor) -> Tensor:
        if not bool(vector.isfinite().all()):
            raise ValueError("vector must be finite")
        return self.last(self.first(vector))


def test_a_model_that_refuses_nan_stays_masked_with_the_reason() -> None:
    model = randomised(Guarded())
    speedup = ModelSpeedup(model, torch.randn(2, 3), {"first": filter_mask(model.first, [0, 1])})

    smaller: Any = speedup.speedup_model()

    assert smaller.first.weight.shape == (4, 3)
    assert not smaller.first.weight[:2].any()
    assert speedup.report is not None
    [kept] = speedup.report.kept
    assert "vector must be finite" in kept.reason
