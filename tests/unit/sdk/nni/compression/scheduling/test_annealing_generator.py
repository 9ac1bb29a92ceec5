import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.config.settings import ConfigListError
from nni.compression.scheduling.annealing_generator import (
    Cooling,
    SimulatedAnnealingTaskGenerator,
)
from nni.compression.scheduling.task import TaskResult

TOTAL = [{"op_types": ["Linear"], "total_sparsity": 0.5}]


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(10, 20), nn.Linear(20, 30))


def sparsities(generator: SimulatedAnnealingTaskGenerator, scores: Any = float) -> list[list[Any]]:
    """Return the sparsities of all tasks, whose scores are a function of their number."""
    found: list[list[Any]] = []
    while (task := generator.next()) is not None:
        _, masks, config_list = task.load_data()
        found.append([entry["total_sparsity"] for entry in config_list])
        score = scores(task.task_id)
        generator.receive_task_result(TaskResult(task.task_id, model(), masks, masks, score))
    return found


@pytest.mark.claim("compression", 39)
def test_a_search_that_always_improves_has_seventeen_tasks(tmp_path: Path) -> None:
    generator = SimulatedAnnealingTaskGenerator(model(), TOTAL, log_dir=tmp_path, seed=0)

    assert len(sparsities(generator)) == 17


@pytest.mark.claim("compression", 40)
def test_all_tasks_prune_the_same_part_and_the_larger_layer_more(tmp_path: Path) -> None:
    generator = SimulatedAnnealingTaskGenerator(model(), TOTAL, log_dir=tmp_path, seed=0)

    for small, large in sparsities(generator):
        assert 0 <= small <= large < 1
        assert (200 * small + 600 * large) / 800 == pytest.approx(0.5)


def test_the_same_seed_gives_the_same_search(tmp_path: Path) -> None:
    one, other = (
        sparsities(
            SimulatedAnnealingTaskGenerator(
                model(), TOTAL, cool_down_rate=0.5, log_dir=tmp_path, seed=3
            )
        )
        for _ in range(2)
    )

    assert one == other


def test_without_a_seed_torch_decides(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        torch.manual_seed(1)
        found.append(
            sparsities(
                SimulatedAnnealingTaskGenerator(
                    model(), TOTAL, cool_down_rate=0.5, log_dir=tmp_path
                )
            )
        )

    assert found[0] == found[1]


def test_earlier_masks_count_towards_the_total(tmp_path: Path) -> None:
    mask = torch.ones(20, 10)
    mask[:10] = 0  # 100 of 800 weights
    generator = SimulatedAnnealingTaskGenerator(
        model(), TOTAL, {"0": {"weight": mask}}, cool_down_rate=0.5, log_dir=tmp_path, seed=0
    )

    for first, second in sparsities(generator):
        assert first >= 0.5
        assert (200 * first + 600 * second) / 800 == pytest.approx(0.5)


def test_models_that_diverge_end_the_search(tmp_path: Path) -> None:
    generator = SimulatedAnnealingTaskGenerator(
        model(), TOTAL, cool_down_rate=0.5, log_dir=tmp_path, seed=0
    )

    found = sparsities(generator, lambda number: math.nan if number else 1.0)

    assert len(found) == 4  # 100, 50, 25 and 12.5


def test_lower_scores_are_better_on_request(tmp_path: Path) -> None:
    generator = SimulatedAnnealingTaskGenerator(
        model(), TOTAL, cool_down_rate=0.5, log_dir=tmp_path, seed=0, best_result_mode="minimize"
    )

    assert len(sparsities(generator, lambda number: -number)) == 4
    best = generator.get_best_result()
    assert best is not None
    assert best[0] == 3


def test_a_search_without_scores_is_refused(tmp_path: Path) -> None:
    generator = SimulatedAnnealingTaskGenerator(model(), TOTAL, log_dir=tmp_path)

    with pytest.raises(ValueError, match="simulated annealing needs scores"):
        sparsities(generator, lambda _: None)


def test_limits_that_exclude_the_total_are_refused(tmp_path: Path) -> None:
    config_list = [{**TOTAL[0], "max_sparsity_per_layer": 0.4}]

    with pytest.raises(ConfigListError, match=r"asks for the sparsity 0\.5 of 0, 1, but"):
        SimulatedAnnealingTaskGenerator(model(), config_list, log_dir=tmp_path)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ((20, 100, 0.9, 0.35), "0 < stop_temperature < start_temperature, got 100 and 20"),
        ((100, 0, 0.9, 0.35), "stop_temperature"),
        ((100, 20, 1.0, 0.35), r"cool_down_rate must be in \(0, 1\), got 1.0"),
        ((100, 20, 0.9, 0.0), r"perturbation_magnitude must be > 0, got 0.0"),
    ],
)
def test_temperatures_out_of_range_are_refused(
    values: tuple[float, float, float, float], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        Cooling(*values)


def test_changes_become_smaller_as_the_temperature_falls() -> None:
    cooling = Cooling(100, 20, 0.9, 0.4)

    assert [cooling.magnitude_at(one) for one in (100, 50)] == [0.4, 0.2]
