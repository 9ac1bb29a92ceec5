import numpy as np
import pytest
from sklearn.model_selection import KFold

from nni.integrations._subsamples import (
    RepeatedSplits,
    SubsampledSplits,
    halving_sizes,
    remaining,
)

SAMPLES = np.zeros((20, 2))


def test_random_splits_are_drawn_once() -> None:
    splits = RepeatedSplits(KFold(2, shuffle=True))

    (first, _), _ = splits.split(SAMPLES)
    (again, _), _ = splits.split(SAMPLES)

    assert first is again


def test_smaller_parts_lie_in_larger_ones_and_tests_are_whole() -> None:
    whole = RepeatedSplits(KFold(2))

    quarter, half = (
        list(SubsampledSplits(whole, fraction, 3).split(SAMPLES)) for fraction in (0.2, 0.5)
    )

    for (small, test), (large, _), (train, whole_test) in zip(
        quarter, half, whole.split(SAMPLES), strict=True
    ):
        assert (len(small), len(large), len(train)) == (2, 5, 10)
        assert set(small) < set(large) < set(train)
        assert list(test) == list(whole_test)


def test_one_sample_always_stays() -> None:
    ((train, _), _) = SubsampledSplits(RepeatedSplits(KFold(2)), 0.001, 0).split(SAMPLES)

    assert len(train) == 1


@pytest.mark.parametrize(
    ("candidates", "least", "most", "factor", "sizes"),
    [
        (9, 10, 900, 3, [100, 300, 900]),
        (9, 200, 900, 3, [300, 900]),
        (1, 10, 900, 3, [900]),
        (2, 10, 900, 3, [300, 900]),
        (100, 1, 2, 3, [2]),
    ],
)
def test_the_last_round_has_all_of_the_resource(
    candidates: int, least: int, most: int, factor: float, sizes: list[int]
) -> None:
    assert halving_sizes(candidates, least, most, factor) == sizes


def test_each_round_has_fewer_candidates() -> None:
    assert [remaining(count, 3) for count in (9, 3, 2, 1)] == [3, 1, 1, 1]
    assert remaining(10, 1.01) == 9
