from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.utils import Latency, compare_latency, measure_latency

INPUTS = torch.zeros(1, 2)


class Clocked(nn.Module):
    """Model whose runs take given seconds of a clock that they advance."""

    def __init__(self, clock: list[float], seconds: list[float]) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.clock = clock
        self.seconds = list(seconds)
        self.threads: set[int] = set()
        self.modes: set[tuple[bool, bool]] = set()

    def forward(self, value: Tensor) -> Any:
        """Advance the clock."""
        self.clock[0] += self.seconds.pop(0)
        self.threads.add(torch.get_num_threads())
        self.modes.add((self.training or self.norm.training, torch.is_grad_enabled()))
        return self.norm(value)


def test_median_and_deciles_without_the_warm_up() -> None:
    now = [0.0]
    model = Clocked(now, [9.0, 9.0, *(number / 1000 for number in range(11, 0, -1))])

    latency = measure_latency(model, INPUTS, warm_up=2, repeats=11, clock=lambda: now[0])

    numbers = latency.median_ms, latency.low_ms, latency.high_ms
    assert numbers == pytest.approx((6, 2, 10))
    assert (latency.repeats, latency.device) == (11, "cpu")


def test_models_run_in_turn_and_neighbours_are_compared() -> None:
    now = [0.0]
    # The machine becomes ten times slower half-way; the ratio does not see it.
    slow = Clocked(now, [0.0, 0.004, 0.004, 0.04])
    fast = Clocked(now, [0.0, 0.002, 0.002, 0.02])

    found = compare_latency(slow, fast, INPUTS, warm_up=1, repeats=3, clock=lambda: now[0])

    assert found.ratio == pytest.approx(2)
    assert (found.before.median_ms, found.after.median_ms) == pytest.approx((4, 2))


def test_the_model_is_measured_in_eval_mode_and_is_the_same_afterwards() -> None:
    now = [0.0]
    model = Clocked(now, [0.001] * 2)
    model.norm.eval()
    before = torch.get_num_threads()

    latency = measure_latency(model, INPUTS, warm_up=1, repeats=1, threads=before + 1)

    assert model.modes == {(False, False)}
    assert (model.training, model.norm.training) == (True, False)
    assert model.threads == {before + 1} == {latency.threads}
    assert torch.get_num_threads() == before


def test_a_model_that_fails_is_restored() -> None:
    model = Clocked([0.0], [])

    with pytest.raises(IndexError):
        measure_latency(model, INPUTS)

    assert model.training


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ({"repeats": 0}, ValueError, "repeats must be >= 1"),
        ({"warm_up": 1.5}, TypeError, "warm_up must be an int"),
        ({"threads": 0}, ValueError, "threads must be >= 1"),
        ({"example_inputs": []}, ValueError, "example_inputs holds no tensor"),
    ],
)
def test_a_bad_argument_is_named(
    arguments: dict[str, Any], error: type[Exception], problem: str
) -> None:
    given: dict[str, Any] = {"model": nn.Linear(2, 2), "example_inputs": INPUTS, **arguments}

    with pytest.raises(error, match=problem):
        measure_latency(**given)


def test_text_names_the_conditions() -> None:
    assert str(Latency(2.0, 1.0, 3.0, 5, 4, "cuda:0")) == (
        "2 ms (1 to 3, 5 runs on cuda:0, 4 threads)"
    )
