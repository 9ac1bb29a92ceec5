import pytest
import torch
from torch import nn

import nni
from nni.nas.evaluator.pytorch import ForwardTime, parameter_bytes, parameter_count


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(3, 3, bias=False)
        self.two = self.one
        self.norm = nn.BatchNorm1d(3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.norm(self.two(self.one(inputs)))


class SteppingClock:
    """Clock whose n-th interval takes n seconds."""

    def __init__(self) -> None:
        self.calls = 0
        self.now = 0.0

    def __call__(self) -> float:
        if self.calls % 2:
            self.now += (self.calls + 1) / 2
        self.calls += 1
        return self.now


def test_shared_parameters_count_once() -> None:
    assert parameter_count(Shared()) == 9 + 6
    # Two buffers of three floats and one counter of eight bytes.
    assert parameter_bytes(Shared()) == 4 * (9 + 6) + 2 * 3 * 4 + 8


def test_the_time_is_the_median_after_the_warm_up() -> None:
    measure = ForwardTime((2, 3), repeats=3, warm_up=2, clock=SteppingClock())

    assert measure(Shared()) == 4.0  # of 3, 4 and 5


def test_a_measure_changes_no_mode_and_no_statistics() -> None:
    model = Shared().train()
    model.norm.eval()

    ForwardTime((2, 3), repeats=1, warm_up=0)(model)

    assert (model.training, model.norm.training) == (True, False)
    assert model.norm.num_batches_tracked == torch.tensor(0)


def test_counts_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="got 0 and 2"):
        ForwardTime((1, 3), repeats=0)


def test_a_measure_travels_as_a_call() -> None:
    assert '"input_shape": [1, 3]' in nni.dump(ForwardTime((1, 3)))
