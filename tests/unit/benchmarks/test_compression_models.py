"""Masked models that benchmarks compare with smaller ones, built from values alone."""

import torch
from torch import nn

from nni.compression import prune
from tests.benchmarks import compression_models
from tests.benchmarks.compression_models import masked_twin, randomise


def model() -> nn.Module:
    built = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 1, groups=2),
        nn.Flatten(), nn.Linear(72, 2),
    )  # fmt: skip
    randomise(built)
    return built.eval()


def test_no_random_parameter_is_zero_or_repeats() -> None:
    for parameter in model().parameters():
        assert len({*parameter.ravel().tolist()}) == parameter.numel()
        assert bool((parameter != 0).all())


def test_elements_that_the_smaller_model_lacks_are_zero() -> None:
    full = model()
    smaller, report = prune(full, torch.randn(1, 3, 5, 5), 0.5)

    twin = masked_twin(full, smaller)

    weights = torch.cat([one.ravel() for one in twin.parameters()])
    assert int((weights != 0).sum()) == report.parameters_after
    image = torch.randn(2, 3, 5, 5)
    assert torch.allclose(twin(image), smaller(image), atol=1e-6)


def test_repeated_values_of_a_large_tensor_are_separated_by_their_indices() -> None:
    full = torch.tensor([[1.0, 2.0, 3.0], [3.0, 5.0, 1.0], [6.0, 7.0, 8.0]])
    part = full[[0, 2]][:, [1, 2]]

    found = compression_models.present_by_indices(full, part)

    assert found.tolist() == [[0, 1, 1], [0, 0, 0], [0, 1, 1]]


def test_filters_of_a_large_kernel_may_keep_different_channels() -> None:
    full = torch.arange(64.0).reshape(4, 4, 2, 2)
    part = torch.stack([full[0, [0, 1]], full[2, [2, 3]]])

    found = compression_models.present_by_indices(full, part)

    assert found[:, :, 0, 0].tolist() == [[1, 1, 0, 0], [0] * 4, [0, 0, 1, 1], [0] * 4]
    assert torch.equal(found, found[:, :, :1, :1].expand_as(found))


def test_norms_of_the_reference_are_silent_on_masked_channels_only() -> None:
    """Channel 0 is masked; channel 1 is cut off by the ReLU in all images."""
    model = nn.Sequential(
        nn.Conv2d(1, 3, 1), nn.ReLU(), nn.Conv2d(3, 3, 1, groups=3, bias=False), nn.BatchNorm2d(3)
    )
    randomise(model)
    model[0].get_parameter("bias").data[1] = -100
    mask = torch.tensor([0.0, 1.0, 1.0])
    masks = {"0": {"weight": mask.reshape(3, 1, 1, 1).expand(3, 1, 1, 1), "bias": mask}}

    image = torch.arange(1.0, 5.0).reshape(1, 1, 2, 2)
    twin = compression_models.masked_reference(model, masks, image)

    assert twin.get_parameter("3.weight").ne(0).tolist() == [False, True, True]
    assert twin.get_parameter("0.bias").ne(0).tolist() == [False, True, True]


def test_norms_of_the_reference_are_silent_where_a_bias_of_a_masked_channel_is_cut_off() -> None:
    """Channels 0 and 1 are masked; the ReLU cuts off the bias of the next filter of channel 0."""
    model = nn.Sequential(
        nn.Conv2d(1, 3, 1), nn.Conv2d(3, 3, 1, groups=3), nn.ReLU(), nn.BatchNorm2d(3)
    )
    randomise(model)
    model[1].get_parameter("bias").data.copy_(torch.tensor([-1.0, 1.0, 1.0]))
    mask = torch.tensor([0.0, 0.0, 1.0])
    masks = {"0": {"weight": mask.reshape(3, 1, 1, 1).expand(3, 1, 1, 1), "bias": mask}}

    image = torch.arange(1.0, 5.0).reshape(1, 1, 2, 2)
    twin = compression_models.masked_reference(model, masks, image)

    assert twin.get_parameter("3.weight").ne(0).tolist() == [False, True, True]


def test_rows_of_a_hidden_layer_count_though_there_are_as_many_classes() -> None:
    full = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4))
    smaller = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 4))

    found = compression_models.parameters_outside_classifier(full, smaller, 4)

    assert found == (16, 8)
