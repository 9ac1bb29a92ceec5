"""Surrogate of trained cells."""

import numpy as np
import pytest

from nni_benchmark.nas.cells import CELLS, all_features, cell_of, number_of
from nni_benchmark.nas.surrogate import TRAINED_FILE, FitQuality, fitted
from nni_benchmark.nas.table import DigitsTable
from nni_benchmark.nas.trained_cells import TrainedCell, read_trained


@pytest.mark.timeout(120)
def test_surrogate_recovers_a_rule_from_few_cells() -> None:
    rng = np.random.default_rng(0)
    convolutions = all_features()[:, 31]
    trained = [
        TrainedCell(int(number), seed, 50 + 10 * convolutions[number] + seed, 0.0, 0.0, 0.0)
        for number in rng.choice(CELLS, 60, replace=False)
        for seed in (0, 1)
    ]

    predicted, quality = fitted(trained, "valid_acc")

    assert predicted.shape == (CELLS,)
    assert quality.r_squared > 0.8
    # Two values that differ by 1 have the sample deviation sqrt(1 / 2).
    assert quality.noise == pytest.approx(0.5**0.5)


def test_committed_quality_is_that_of_a_fit_at_the_level_of_the_noise() -> None:
    quality = DigitsTable().quality["valid_acc"]

    assert isinstance(quality, FitQuality)
    assert quality.cells == 240
    assert quality.r_squared > 0.9
    assert quality.kendall_tau > 0.7
    assert quality.mean_absolute_error < quality.noise


def test_table_agrees_with_the_trained_cells() -> None:
    table = DigitsTable()
    trained = read_trained(TRAINED_FILE)

    errors = [abs(table.accuracy(cell_of(one.number)) - one.valid_acc) for one in trained]

    assert number_of(cell_of(trained[0].number)) == trained[0].number
    assert sum(errors) / len(errors) < table.quality["valid_acc"].noise
