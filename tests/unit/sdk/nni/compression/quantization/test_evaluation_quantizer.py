from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression import TorchEvaluator
from nni.compression.quantization.evaluation_quantizer import EvaluationQuantizer
from nni.compression.quantization.range_quantizer import RangeQuantizer

CONFIG: list[dict[str, Any]] = [{"op_types": ["Linear"], "target_names": ["_input_", "weight"]}]
BATCH = torch.tensor([[1.0, -1.0]])


class OneEvaluation(EvaluationQuantizer):
    """Quantizer that evaluates its model once, with a hook that counts the calls."""

    def compress(self) -> tuple[nn.Module, dict[str, dict[str, Any]]]:
        self.wrap_model()
        self.calls = 0

        def count(*_: object) -> None:
            self.calls += 1

        self._evaluate([self.bound_model.register_forward_hook(count)])
        return self.bound_model, self.get_calibration_config()


def quantizer_with(run: Callable[[nn.Module], float]) -> OneEvaluation:
    model = nn.Sequential(nn.Linear(2, 2))
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    return OneEvaluation(model, CONFIG, TorchEvaluator(print, sgd, print, evaluating_func=run))


def test_inputs_are_not_observed_by_themselves_and_are_rounded_by_default() -> None:
    quantizer = quantizer_with(lambda model: model(BATCH).sum().item())

    quantizer.compress()

    (found,) = [one for place, one in quantizer.target_quantizers() if not place.is_parameter]
    assert isinstance(found, RangeQuantizer)
    assert (found.observing, int(found.observations)) == ("never", 0)
    assert found.settings.apply_method == "clamp_round"


def test_hooks_of_an_evaluation_end_with_it() -> None:
    quantizer = quantizer_with(lambda model: model(BATCH).sum().item())
    model, _ = quantizer.compress()

    model(BATCH)

    assert quantizer.calls == 1


def test_failed_evaluation_leaves_no_hook() -> None:
    def broken(model: nn.Module) -> float:
        raise OSError("no data")

    quantizer = quantizer_with(broken)

    with pytest.raises(OSError, match="no data"):
        quantizer.compress()

    quantizer.bound_model(BATCH)
    assert quantizer.calls == 0


def test_evaluator_is_needed() -> None:
    with pytest.raises(TypeError, match="must be an Evaluator"):
        OneEvaluation(nn.Linear(2, 2), CONFIG, None)  # type: ignore[arg-type] # what is tested
