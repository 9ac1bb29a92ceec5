import csv
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.utils import SensitivityAnalysis

NINE = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


def model_of() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 10, 1), nn.ReLU(), nn.Conv2d(10, 20, 1), nn.Flatten())


def kept(model: nn.Module, factor: float = 1.0) -> float:
    """Return the part of all weights that are not zero, times a factor."""
    one = torch.ones(1, 1, 1, 1)
    model(one)  # a wrapper masks its parameters in the forward pass
    weights = [p for name, p in model.named_parameters() if name.endswith("weight")]
    return factor * float(sum(int((w != 0).sum()) for w in weights)) / 210


def test_each_layer_is_pruned_alone_at_each_sparsity() -> None:
    found = SensitivityAnalysis(model_of(), kept, sparsities=[0.5, 0.2]).analysis()

    assert {name: list(row) for name, row in found.items()} == {"0": [0.2, 0.5], "2": [0.2, 0.5]}
    assert list(found["0"].values()) == pytest.approx([208 / 210, 205 / 210])
    assert list(found["2"].values()) == pytest.approx([170 / 210, 110 / 210])


@pytest.mark.claim("compression", 83)
def test_nine_sparsities_early_end_short_rows_and_weights_as_before(tmp_path: Path) -> None:
    model = model_of()
    before = {name: one.clone() for name, one in model.state_dict().items()}
    analysis = SensitivityAnalysis(model, kept, early_stop_mode="dropped", early_stop_value=0.1)

    found = analysis.analysis()
    analysis.export(tmp_path / "sensitivity.csv")

    assert analysis.sparsities == NINE
    assert list(found["0"]) == NINE  # ten of 210 weights are never a tenth
    # 20 weights are less than a tenth of 210, 40 are more: the second value ends the row.
    assert list(found["2"]) == [0.1, 0.2]
    with (tmp_path / "sensitivity.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["layername", *map(str, NINE)]
    assert [(row[0], len(row)) for row in rows[1:]] == [("0", 10), ("2", 3)]
    assert all(torch.equal(before[name], one) for name, one in model.state_dict().items())


@pytest.mark.parametrize(
    ("mode", "value", "factor", "count"),
    [("minimize", 0.75, 1, 3), ("maximize", -0.75, -1, 3), ("raised", 0.35, -1, 4)],
)
def test_other_early_ends(mode: Any, value: float, factor: float, count: int) -> None:
    model = model_of()
    analysis = SensitivityAnalysis(model, kept, early_stop_mode=mode, early_stop_value=value)

    found = analysis.analysis(val_args=[model, factor], specified_layers=["2"])

    assert list(found["2"]) == NINE[:count]


def test_what_was_pruned_before_counts() -> None:
    model = model_of()
    analysis = SensitivityAnalysis(model, kept, sparsities=[0.5])
    analysis.update_already_pruned("2", 0.5)

    found = analysis.analysis(specified_layers=["2"], val_kwargs={"model": model, "factor": 210})

    assert found == {"2": {0.5: 10 + 200 - 150}}


def test_later_measurements_start_from_new_weights() -> None:
    model = model_of()
    analysis = SensitivityAnalysis(model, lambda one: one[0].bias[0].item(), sparsities=[0.1])
    state = {name: torch.full_like(one, 3.0) for name, one in model.state_dict().items()}
    analysis.load_state_dict(state)

    assert analysis.analysis(specified_layers=["2"]) == {"2": {0.1: 3.0}}


def test_weights_are_restored_when_the_evaluation_fails() -> None:
    model = model_of()
    before = model.get_parameter("0.weight").detach().clone()

    def fail(one: nn.Module) -> float:
        one(torch.ones(1, 1, 1, 1))
        raise RuntimeError("no data")

    with pytest.raises(RuntimeError, match="no data"):
        SensitivityAnalysis(model, fail).analysis()

    assert isinstance(model[0], nn.Conv2d)
    assert torch.equal(model.get_parameter("0.weight"), before)


@pytest.mark.parametrize("kind", ["l1", "l2", "fpgm", "level"])
def test_every_type_of_pruning_masks_as_much(kind: str) -> None:
    found = SensitivityAnalysis(model_of(), kept, [0.5], kind).analysis(specified_layers=["2"])

    assert found["2"][0.5] == pytest.approx(110 / 210)


def test_convolutions_of_one_and_two_dimensions_are_counted() -> None:
    model = nn.Sequential(nn.Conv1d(1, 2, 1), nn.Linear(2, 2), nn.Conv2d(1, 2, 1))

    assert SensitivityAnalysis(model, kept).layers_count == 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"prune_type": "l3"}, "prune_type must be one of l1, l2, fpgm, level"),
        ({"early_stop_mode": "sunk", "early_stop_value": 1}, "early_stop_mode must be one of"),
        ({"early_stop_mode": "dropped"}, "must be given together"),
        ({"early_stop_value": 0.1}, "must be given together"),
        ({"sparsities": [0.0, 0.5]}, r"sparsities must be in \(0, 1\)"),
        ({"sparsities": []}, r"sparsities must be in \(0, 1\)"),
    ],
)
def test_a_bad_argument_is_named(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        SensitivityAnalysis(model_of(), kept, **arguments)


def test_unknown_layers_and_ratios_are_named(tmp_path: Path) -> None:
    analysis = SensitivityAnalysis(model_of(), kept)

    with pytest.raises(ValueError, match=r"specified_layers has '1'; the convolutions are 0, 2"):
        analysis.analysis(specified_layers=["1"])
    with pytest.raises(ValueError, match="layername must be a convolution"):
        analysis.update_already_pruned("1", 0.5)
    with pytest.raises(ValueError, match=r"ratio must be in \[0, 1\), got 1"):
        analysis.update_already_pruned("0", 1)
    with pytest.raises(ValueError, match="nothing to export"):
        analysis.export(tmp_path / "nothing.csv")


@pytest.mark.parametrize("mode", ["minimize", "maximize", "dropped", "raised"])
def test_a_metric_that_is_no_number_ends_the_measurements_of_a_layer(mode: Any) -> None:
    metrics = iter([1.0] * (mode in {"dropped", "raised"}) + [1.0, math.nan, 1.0])
    analysis = SensitivityAnalysis(
        nn.Sequential(nn.Conv2d(1, 10, 1)),
        lambda _: next(metrics),
        *([0.1, 0.2, 0.3], "l1", mode, 0.5 if mode == "minimize" else 2.0),
    )

    assert list(analysis.analysis()["0"]) == [0.1, 0.2]
