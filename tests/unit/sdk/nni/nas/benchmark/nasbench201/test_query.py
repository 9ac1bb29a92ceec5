"""Queries of NAS-Bench-201, on cells that were trained for this test: 2 epochs instead of 200."""

from dataclasses import fields

import pytest

from nni.nas.benchmark.nasbench201 import Nb201TrialStats, query_nb201_trial_stats
from tests.unit.sdk.nni.nas.benchmark.conftest import NB201_ARCHS

KEYS = [field.name for field in fields(Nb201TrialStats)]


@pytest.mark.claim("nas", 81)
@pytest.mark.usefixtures("databases")
def test_row_has_the_fields_of_the_specification() -> None:
    rows = list(query_nb201_trial_stats(NB201_ARCHS[0], 2, "cifar100"))

    assert len(rows) == 3
    for row in rows:
        assert set(row) == {"id", *KEYS}
        assert row["config"]["arch"] == NB201_ARCHS[0]


@pytest.mark.usefixtures("databases")
def test_wildcards_match_everything() -> None:
    assert len(list(query_nb201_trial_stats(None, None, None))) == 2 * 2 * 3


@pytest.mark.usefixtures("databases")
def test_course_of_a_training_ends_with_its_result() -> None:
    row = next(
        query_nb201_trial_stats(NB201_ARCHS[1], None, "cifar10-valid", include_intermediates=True)
    )

    assert [one["current_epoch"] for one in row["intermediates"]] == [1, 2]
    assert row["intermediates"][-1]["valid_loss"] == row["valid_loss"]


@pytest.mark.usefixtures("databases")
def test_mean_has_no_seed() -> None:
    (row,) = query_nb201_trial_stats(NB201_ARCHS[0], 2, "cifar100", reduction="mean")

    assert row["seed"] is None
    assert 0 <= row["valid_acc"] <= 100
