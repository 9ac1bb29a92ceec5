import csv
import json
import logging
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.config.settings import ConfigListError
from nni.compression.pruning.sensitivity_pruner import (
    SensitivityPruner,
    default_proportions,
    load_sensitivity,
    normalized,
)

CONVS = [{"op_types": ["Conv2d"], "sparse_ratio": 0.4}]
IMAGE = torch.ones(1, 1, 2, 2)


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 20, 1), nn.ReLU(), nn.Conv2d(20, 20, 1))


def robust(one: Any) -> float:
    """Return a metric that falls only with the first layer."""
    return float((one[0].weight != 0).float().mean())


def test_insensitive_layers_lose_more() -> None:
    pruner = SensitivityPruner(model(), CONVS, robust, sparsity_per_iter=0.2)

    pruner.compress()

    first, second = pruner.layer_sparsities().values()
    assert first < second
    assert 0.4 - 1 / 20 <= pruner.current_sparsity() <= 0.4 + 1 / 20
    assert len(pruner.history) >= 2
    assert [remaining for _, remaining in pruner.history] == sorted(
        (remaining for _, remaining in pruner.history), reverse=True
    )


def test_the_metric_after_finetuning_is_the_next_baseline() -> None:
    baselines = []

    def proportions(ori_acc: float, threshold: float, found: Any) -> dict[str, float]:
        baselines.append(ori_acc)
        assert threshold == 0.05
        return default_proportions(ori_acc, threshold, found)

    tuned: list[nn.Module] = []
    pruner = SensitivityPruner(
        model(),
        CONVS,
        robust,
        finetuner=tuned.append,
        sparsity_proportion_calc=proportions,
        sparsity_per_iter=0.2,
    )
    one, _ = pruner.compress()

    assert baselines == [1.0, *(metric for metric, _ in pruner.history[:-1])]
    assert tuned == [one] * len(pruner.history)


def test_callbacks_get_their_arguments() -> None:
    one = model()

    def evaluator(factor: float, *, of: nn.Module) -> float:
        return factor * robust(of)

    def finetuner(*, epochs: int) -> None:
        assert epochs == 3

    pruner = SensitivityPruner(one, CONVS, evaluator, finetuner, sparsity_per_iter=0.3)
    pruner.compress([2.0], {"of": one}, None, {"epochs": 3})

    assert 1 < pruner.history[0][0] <= 2


def test_a_function_of_the_sensitivities_alone_will_do() -> None:
    pruner = SensitivityPruner(
        model(), CONVS, robust, sparsity_proportion_calc=lambda found: dict.fromkeys(found, 0.5)
    )

    pruner.compress()

    first, second = pruner.layer_sparsities().values()
    assert abs(first - second) <= 1 / 20 + 1e-9


def test_weights_of_other_layers_and_masks_stay_consistent() -> None:
    one = model()
    pruner = SensitivityPruner(one, CONVS, robust, sparsity_per_iter=0.2)
    _, masks = pruner.compress()
    pruner.unwrap_model()

    for name, targets in masks.items():
        for target, mask in targets.items():
            expected = model().get_parameter(f"{name}.{target}") * mask
            assert torch.equal(one.get_parameter(f"{name}.{target}"), expected)


def test_each_iteration_leaves_a_checkpoint_that_can_be_resumed(tmp_path: Path) -> None:
    pruner = SensitivityPruner(
        model(), CONVS, robust, sparsity_per_iter=0.2, checkpoint_dir=tmp_path
    )
    pruner.compress()

    metric, remaining = pruner.history[0]
    name = f"Iter_1_finetune_acc_{metric:.5f}_sparsity_{remaining:.4f}"
    assert (tmp_path / f"{name}.pth").is_file()
    entries = json.loads((tmp_path / f"{name}_pruner.json").read_text())
    assert all(0 < entry["sparsity"] < 1 for entry in entries)
    path = tmp_path / f"{name}_sensitivity.csv"
    with path.open(newline="") as file:
        assert next(csv.reader(file))[0] == "layername"
    again = SensitivityPruner(model(), CONVS, robust, sparsity_per_iter=0.2)
    assert set(again.load_sensitivity(path)) == {"0", "2"}
    again.compress(resume_sensitivity=path)
    assert again.history == pruner.history


def test_layers_that_may_lose_nothing_end_the_pruning(caplog: pytest.LogCaptureFixture) -> None:
    pruner = SensitivityPruner(model(), CONVS, robust, sparsity_proportion_calc=lambda _: {})

    with caplog.at_level(logging.ERROR):
        pruner.compress()

    assert "no layer can be pruned further" in caplog.text
    assert pruner.current_sparsity() == 0


def test_short_rows_of_sensitivities_are_read(tmp_path: Path) -> None:
    (tmp_path / "found.csv").write_text("layername,0.1,0.2\r\na,0.9\r\nb,0.9,0.8\r\n")

    found = load_sensitivity(tmp_path / "found.csv")

    assert found == {"a": {0.1: 0.9}, "b": {0.1: 0.9, 0.2: 0.8}}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"layername,0.1\r\na,0.9\r\nb,high\r\n", 3),
        (b"layername,much\r\n", 1),
        (b"layername,0.1\r\n\r\n", 2),
        (b"layername,0.1\r\n\xff,0.9\r\n", 1),
    ],
)
def test_file_of_something_else_is_refused_by_file_and_line(
    content: bytes, line: int, tmp_path: Path
) -> None:
    path = tmp_path / "found.csv"
    path.write_bytes(content)

    with pytest.raises(ValueError, match=rf"found\.csv, line {line} must be of a file of Sens"):
        load_sensitivity(path)


def test_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.touch()

    with pytest.raises(ValueError, match=r"found\.csv, line 1 must be"):
        load_sensitivity(path)


def test_model_is_wrapped_after_an_error_of_the_evaluator() -> None:
    one = model()
    calls = iter([0.9])
    pruner = SensitivityPruner(one, CONVS, lambda _: next(calls))

    with pytest.raises(StopIteration):
        pruner.compress()

    assert "0.module" in dict(one.named_modules())


def test_a_metric_that_is_no_number_counts_as_a_fall() -> None:
    measured = {"a": {0.1: 0.9, 0.2: math.nan, 0.3: 0.9}, "b": {0.1: 0.9, 0.2: 0.9, 0.3: 0.9}}

    assert default_proportions(0.9, 0.1, measured) == {"a": 0.2, "b": 0.3}


def test_no_layer_loses_nearly_all_in_one_iteration() -> None:
    assert normalized({"a": 0.9, "b": 0.1}, {"a": 100.0, "b": 100.0}, 150) == pytest.approx(
        {"a": 0.95, "b": 0.95 / 9}
    )
    assert normalized({}, {}, 10) == {}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"evaluator": None}, "evaluator must be a function"),
        ({"sparsity_per_iter": 1}, "sparsity_per_iter must be"),
        ({"acc_drop_threshold": 0}, "acc_drop_threshold must be > 0, got 0"),
        ({"config_list": [{"op_names": ["1"], "sparse_ratio": 0.5}]}, "no parameter 'weight'"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], error: str) -> None:
    given: dict[str, Any] = {"config_list": CONVS, "evaluator": robust, **options}

    with pytest.raises((TypeError, ValueError, ConfigListError), match=error):
        SensitivityPruner(model(), **given)
