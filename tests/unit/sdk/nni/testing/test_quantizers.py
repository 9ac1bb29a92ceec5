from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base import (
    QuantizationSettings,
    Quantizer,
    TargetPlace,
    TargetQuantizer,
)
from nni.testing.quantizers import Entry, QuantizerConformance


class Faulty(TargetQuantizer):
    """Quantizer that rounds without bits, passes no gradient and replaces its scale."""

    def forward(self, value: Tensor) -> Tensor:
        self.scale = self.scale + 1
        return (value * 1000).round().detach() / 1000


class FaultyQuantizer(Quantizer):
    def make_target_quantizer(
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        return Faulty(settings, place)


class FaultySuite(QuantizerConformance):
    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return FaultyQuantizer(model, config_list)


@pytest.mark.parametrize(
    "test",
    [
        "test_targets_take_no_more_values_than_their_bits_allow",
        "test_eval_mode_changes_nothing",
        "test_a_replica_changes_the_state_of_the_model",
    ],
)
def test_a_faulty_quantizer_fails(test: str) -> None:
    with pytest.raises(AssertionError):
        getattr(FaultySuite(), test)()


def test_gradients_that_do_not_pass_are_found() -> None:
    with pytest.raises((AssertionError, RuntimeError)):
        FaultySuite().test_gradients_reach_the_parameters()


def test_other_tests_pass(tmp_path: Path) -> None:
    FaultySuite().test_wrapping_and_unwrapping_leaves_the_model()
    FaultySuite().test_the_export_is_a_float_model(tmp_path)
    assert torch.is_grad_enabled()
