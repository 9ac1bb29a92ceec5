import csv
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.pruning.legacy.annealing_pruner import AnnealingPruner

pytestmark = pytest.mark.filterwarnings("ignore:.*of an older NNI:DeprecationWarning")

HALF: list[dict[str, object]] = [{"op_types": ["Linear"], "sparsity": 0.5}]


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 60), nn.ReLU(), nn.Linear(60, 40), nn.Linear(40, 3))


def pruner_of(folder: Path, evaluator: Any, **options: Any) -> AnnealingPruner:
    options.setdefault("base_algo", "level")
    return AnnealingPruner(net(), HALF, evaluator, experiment_data_dir=folder, **options)


@pytest.mark.claim("compression", 39)
def test_every_accepted_change_cools_the_search(tmp_path: Path) -> None:
    scores = itertools.count(1)

    pruner_of(tmp_path, lambda _: float(next(scores))).compress()

    assert next(scores) == 17  # sixteen evaluations


@pytest.mark.claim("compression", 41)
def test_history_and_result_are_written(tmp_path: Path) -> None:
    def score(model: nn.Module) -> float:
        return float(model(torch.ones(1, 20)).detach().sum())

    pruner = pruner_of(tmp_path / "results", score, stop_temperature=80)
    model = pruner.compress()

    with (tmp_path / "results" / "search_history.csv").open(newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header == ["sparsity", "performance", "config_list"]
    assert {row[0] for row in rows} == {"0.5"}
    result = json.loads((tmp_path / "results" / "search_result.json").read_text())
    best = max(rows, key=lambda row: float(row[1]))
    assert result["performance"] == float(best[1]) == score(model)  # type: ignore[arg-type]
    assert json.loads(result["config_list"]) == json.loads(best[2]) == pruner.best_config_list


@pytest.mark.claim("compression", 40)
def test_the_best_masks_keep_the_total_and_larger_layers_lose_more(tmp_path: Path) -> None:
    scores = itertools.count(1)
    pruner = pruner_of(tmp_path, lambda _: float(next(scores)))

    found = pruner.compress(return_config_list=True)

    assert found == pruner.best_config_list
    sizes, sparsities = pruner.weight_sizes(), pruner.layer_sparsities()
    total = sum(sizes.values())
    masked = sum(sizes[name] * part for name, part in sparsities.items())
    assert masked / total == pytest.approx(0.5, abs=0.01)
    ordered = sorted(sizes, key=sizes.__getitem__)
    assert [sparsities[name] for name in ordered] == sorted(sparsities.values())


def test_every_change_is_scored_on_the_original_weights(tmp_path: Path) -> None:
    originals = [one.detach().clone() for one in net().parameters()]
    pruner: AnnealingPruner

    def check(model: nn.Module) -> float:
        for wrapper, weight in zip(
            pruner.get_modules_wrapper().values(), originals[::2], strict=True
        ):
            mask = wrapper.mask("weight")
            assert mask is not None
            assert torch.equal(wrapper.parameter("weight")[mask == 1], weight[mask == 1])
        model(torch.ones(1, 20))  # masked weights become zero
        return 1.0

    pruner = pruner_of(tmp_path, check, stop_temperature=80)
    pruner.compress()


def test_a_smaller_score_may_be_the_better_one(tmp_path: Path) -> None:
    scores = itertools.count(1)
    pruner = pruner_of(
        tmp_path, lambda _: float(next(scores)), optimize_mode="minimize", stop_temperature=80
    )

    pruner.compress()

    result = json.loads((tmp_path / "search_result.json").read_text())
    assert result["performance"] == 1


def test_a_search_without_accepted_changes_ends(tmp_path: Path) -> None:
    scores = itertools.chain([1e9], itertools.repeat(0.0))
    pruner = AnnealingPruner(
        nn.Sequential(nn.Linear(2, 2)), HALF, lambda _: next(scores), base_algo="level",
        start_temperature=2, stop_temperature=1, experiment_data_dir=tmp_path,
    )  # fmt: skip

    pruner.compress()

    assert len((tmp_path / "search_history.csv").read_text().splitlines()) == 1001


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="evaluator must be a function of the model, got None"):
        pruner_of(tmp_path, None)
    with pytest.raises(ValueError, match="optimize_mode must be"):
        pruner_of(tmp_path, len, optimize_mode="max")
    with pytest.raises(ValueError, match="evaluator must return a number that is not NaN"):
        pruner_of(tmp_path, lambda _: float("nan")).compress()
