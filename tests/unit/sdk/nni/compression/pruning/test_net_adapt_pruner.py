import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.pruning.net_adapt_pruner import NetAdaptPruner, further_sparsities

HALF = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 20), nn.Linear(20, 10))


def unchanged(_: nn.Module) -> None:
    """Fine-tuner that does nothing."""


def kept(one: Any) -> float:
    return float((one(torch.ones(1, 10)) != 0).sum())


def pruner(one: nn.Module, **options: Any) -> NetAdaptPruner:
    given: dict[str, Any] = {
        "short_term_fine_tuner": unchanged,
        "evaluator": kept,
        "experiment_data_dir": None,
    }
    return NetAdaptPruner(one, HALF, **{**given, **options})


@pytest.mark.claim("compression", 42)
def test_ten_steps_of_a_twentieth_reach_a_half() -> None:
    one = pruner(model())

    one.compress()

    assert len(one.history) == 10
    found = dict.fromkeys(["0", "2", "3"], 0.0)
    for layer, sparsity, _ in one.history:
        assert sparsity > found[layer]  # one layer changes in each step
        found[layer] = sparsity
    # Truncation to whole channels; a channel of the last layer is a tenth.
    assert one.layer_sparsities() == pytest.approx(found, abs=0.1)


def test_the_layer_with_the_best_score_is_pruned() -> None:
    def evaluator(one: Any) -> float:
        return -float((one[2].weight_mask == 0).sum())

    one = pruner(model(), evaluator=evaluator)
    one.compress()

    assert "2" not in {layer for layer, _, _ in one.history}
    other = pruner(model(), evaluator=evaluator, optimize_mode="minimize")
    other.compress()
    assert other.history[0][0] == "2"
    assert other.history[0][2] < 0  # the score itself, not its opposite


def test_the_weights_of_the_best_candidate_stay() -> None:
    def finetuner(one: Any) -> None:
        with torch.no_grad():
            one[0].module.bias.add_(1)

    origin = model()
    one = pruner(origin, short_term_fine_tuner=finetuner, sparsity_per_iteration=0.25)
    one.compress()
    one.unwrap_model()

    # Two steps with one fine-tuning each, whatever other candidates did.
    live = one.get_masks()["0"]["bias"] == 1
    expected = model().get_parameter("0.bias") + 2
    torch.testing.assert_close(origin.get_parameter("0.bias")[live], expected[live])


def test_the_result_is_written(tmp_path: Path) -> None:
    one = pruner(model(), experiment_data_dir=tmp_path, sparsity_per_iteration=0.25)
    one.compress()

    result = json.loads((tmp_path / "search_result.json").read_text())
    entries = json.loads(result["config_list"])
    assert result["performance"] == one.history[-1][2]
    sparsities = {entry["op_names"][0]: entry["sparsity"] for entry in entries}
    found = {name: value for name, value in one.layer_sparsities().items() if value}
    assert sparsities == found


def test_steps_that_are_too_large_are_halved() -> None:
    one = NetAdaptPruner(
        nn.Sequential(nn.Linear(10, 10), nn.Linear(10, 10)),
        [{"op_names": ["1"], "sparse_ratio": 0.3}],
        unchanged,
        lambda _: math.nan,
        sparsity_per_iteration=0.25,
        experiment_data_dir=None,
    )

    one.compress()

    # 50 of 200 weights are half of the layer; 10 more, then nothing of 100 is left for 0.5 of it.
    assert [layer for layer, _, _ in one.history] == ["1", "1"]
    assert one.layer_sparsities()["1"] == pytest.approx(0.6)


def test_what_the_next_layer_loses_counts() -> None:
    sizes = {"a": 100, "b": 200, "c": 300}

    found = further_sparsities({"a": 0.5, "b": 0.0, "c": 0.95}, sizes, 30)

    assert found == {"a": 0.5 + 30 / 300, "b": 30 / (100 + 300 * (1 - 0.95))}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"evaluator": None}, "evaluator is missing"),
        ({"short_term_fine_tuner": 1}, "short_term_fine_tuner must be a function"),
        ({"sparsity_per_iteration": 0}, r"sparsity_per_iteration must be in \(0, 1\), got 0"),
        ({"optimize_mode": "best"}, "optimize_mode must be"),
        ({"base_algo": "slim"}, "base_algo must be one of"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        pruner(model(), **options)
