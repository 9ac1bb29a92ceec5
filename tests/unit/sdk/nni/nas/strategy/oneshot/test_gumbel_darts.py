"""DARTS with noise of falling temperature."""

import pytest

from nni.nas.oneshot.pytorch.architecture import GumbelWeights
from nni.nas.strategy.oneshot import GumbelDARTS
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Branches, Training, fit, line_data


@pytest.mark.claim("nas", 54)
@pytest.mark.parametrize(("epoch", "expected"), [(0, 1.0), (5, 0.665), (10, 0.33)])
def test_default_temperature_falls_linearly(epoch: int, expected: float) -> None:
    strategy = GumbelDARTS()
    space = strategy.mutate_model(Branches())

    temperature = strategy.configure_oneshot_module(Training(space)).temperature

    assert temperature is not None
    assert temperature.at(epoch, 10) == pytest.approx(expected)


def test_training_sets_the_temperature_of_its_last_epoch() -> None:
    strategy = GumbelDARTS(temperature=(4.0, 0.0))
    space = strategy.mutate_model(Branches())

    module = strategy.configure_oneshot_module(Training(space))
    fit(module, 4, train_dataloaders={"train": line_data(), "val": line_data(seed=1)})

    assert isinstance(strategy.architecture, GumbelWeights)
    assert strategy.architecture.temperature == 1.0


def test_other_temperature_is_refused() -> None:
    with pytest.raises(ValueError, match="init >= min"):
        GumbelDARTS(temperature=(0.1, 1.0))
