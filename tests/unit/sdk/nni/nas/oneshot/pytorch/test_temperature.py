"""Temperature of a relaxed choice over the epochs of a search."""

import pytest

from nni.nas.oneshot.pytorch.temperature import LinearTemperature, temperature_schedule


@pytest.mark.parametrize(("epoch", "expected"), [(0, 1.0), (5, 0.665), (10, 0.33)])
def test_default_temperature_falls_linearly(epoch: int, expected: float) -> None:
    assert temperature_schedule((1.0, 0.33)).at(epoch, 10) == pytest.approx(expected)


def test_number_is_constant() -> None:
    schedule = temperature_schedule(2)

    assert [schedule.at(epoch, 4) for epoch in range(5)] == [2.0] * 5


def test_mapping_names_first_and_last_value() -> None:
    assert temperature_schedule({"init": 3, "min": 1}) == LinearTemperature(3.0, 1.0)


def test_object_with_a_method_is_taken_as_it_is() -> None:
    class Halving:
        def at(self, epoch: int, total: int) -> float:
            return 0.5**epoch / total

    halving = Halving()

    assert temperature_schedule(halving) is halving


@pytest.mark.parametrize(
    "value", [(0.3, 1.0), (1.0, -0.1), -1, "hot", (1, 2, 3), {"init": 1}, True, None]
)
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="temperature must"):
        temperature_schedule(value)


def test_epochs_beyond_the_last_keep_the_last_value() -> None:
    assert LinearTemperature(1.0, 0.5).at(12, 10) == 0.5
