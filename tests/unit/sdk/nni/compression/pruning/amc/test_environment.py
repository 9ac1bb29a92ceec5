import numpy as np
import pytest
import torch
from torch import nn

from nni.compression.pruning.amc.environment import STATE_SIZE, Environment, Limits
from tests.unit.sdk.nni.compression.pruning.amc.test_channels import parts

LIMITS = Limits(flops_ratio=0.5, lower=0.2, upper=1.0, multiple=2)


def environment(limits: Limits = LIMITS) -> Environment:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 20, 1), nn.Conv2d(20, 10, 1), nn.Conv2d(10, 10, 1))
    layers, sets, count = parts(model, {"0", "1", "2"})
    return Environment(dict(model.named_modules()), layers, sets, count, limits)


def test_each_step_decides_about_a_set_and_keeps_the_budget() -> None:
    one = environment()
    one.reset()

    _, first, done = one.step(1.0)
    assert not done
    _, second, done = one.step(1.0)

    # Operations of a place: 60 a + 200 a b + 100 b of 360; b is at least 0.2.
    assert done
    assert [first, second] == one.actions == [1.0, 0.4]
    assert one.flops_ratio() == pytest.approx((60 + 200 * 0.4 + 100 * 0.4) / 360)
    assert one.flops_ratio() <= 0.5


@pytest.mark.parametrize(("action", "kept"), [(0.0, 0.2), (0.31, 0.4), (0.3, 0.3)])
def test_actions_are_bounded_and_rounded_up(action: float, kept: float) -> None:
    one = environment()
    one.reset()

    assert one.step(action)[1] == kept


def test_the_upper_bound_holds() -> None:
    one = environment(Limits(0.5, 0.2, 0.5, 2))
    one.reset()

    assert one.step(0.9)[1] == 0.5


def test_the_state_tells_the_layer_and_the_operations() -> None:
    one = environment()

    first = one.reset()
    second, action, _ = one.step(0.5)

    assert len(first) == len(second) == STATE_SIZE
    # Index, type, inputs, outputs, stride, kernel, weights: scaled over the two layers.
    assert first.tolist()[:7] == [0, 0, 1, 0, 0, 0, 1]
    assert second.tolist()[:7] == [1, 0, 0, 0, 0, 0, 0]
    assert first.tolist()[7:] == pytest.approx([0, 100 / 360, 1])
    assert second.tolist()[7:] == pytest.approx([130 / 360, 0, action])


def test_the_kept_units_are_the_first_of_each_set() -> None:
    one = environment()
    one.reset()
    one.step(0.5)
    one.step(0.2)

    kept = one.kept()

    for chosen, count in zip(one.sets, (10, 2), strict=True):
        assert np.array_equal(kept[chosen.units], np.arange(len(chosen.units)) < count)


def test_a_budget_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(ValueError, match=r"flops_ratio must be >= 0\.1.*, got 0.1"):
        environment(Limits(0.1, 0.2, 1.0, 2))


def test_a_model_without_channels_to_prune_is_refused() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1))
    layers, sets, count = parts(model, {"0"})

    with pytest.raises(ValueError, match="config_list must select layers whose input"):
        Environment(dict(model.named_modules()), layers, sets, count, LIMITS)
