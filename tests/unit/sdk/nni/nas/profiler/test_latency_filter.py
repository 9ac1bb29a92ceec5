"""Filter of models by latency."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import nni
from nni.nas.profiler import ExpressionProfiler, LatencyFilter


@dataclass
class Model:
    sample: dict[str, int]


def latency_of(model: Model) -> float:
    return float(model.sample["ms"])


MODELS = [Model({"ms": latency}) for latency in (99, 100, 101)]


@pytest.mark.claim("nas", 78)
def test_models_below_the_threshold_are_admitted() -> None:
    admits = LatencyFilter(100, latency_of)

    assert [admits(model) for model in MODELS] == [True, False, False]


@pytest.mark.claim("nas", 78)
def test_reversed_filter_admits_the_others() -> None:
    admits = LatencyFilter(100, latency_of, reverse=True)

    assert [admits(model) for model in MODELS] == [False, True, True]


def test_profiler_predicts_from_the_sample_of_a_model() -> None:
    latency = nni.choice("ms", [99, 100, 101])
    admits = LatencyFilter(100, ExpressionProfiler(latency, latency + 1))

    assert [admits(model) for model in MODELS] == [False, False, False]


def test_name_of_a_predictor_needs_nn_meter() -> None:
    with pytest.raises(ImportError, match="needs nn-Meter, which is not installed"):
        LatencyFilter(100, "cortexA76cpu_tflite21")


def test_other_predictors_are_refused() -> None:
    with pytest.raises(TypeError, match="predictor must be a Profiler, a function of the model"):
        LatencyFilter(100, 3)  # type: ignore[arg-type]
