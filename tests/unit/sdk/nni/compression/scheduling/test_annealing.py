import math
import random

import pytest

from nni.compression.scheduling.annealing import accepts, first_sparsities, perturbed

SIZES = [1000, 5000, 2000, 9000, 1500]
FREE = [1.0] * len(SIZES)


def total_of(sparsities: list[float], sizes: list[int]) -> float:
    pruned = sum(int(one * size) for one, size in zip(sparsities, sizes, strict=True))
    return pruned / sum(sizes)


@pytest.mark.claim("compression", 40)
@pytest.mark.parametrize("total", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_every_vector_keeps_the_total_and_the_order_of_the_layers(total: float) -> None:
    generator = random.Random(0)

    found = first_sparsities(SIZES, total, FREE, generator)
    for step in range(100):
        assert total_of(found, SIZES) == pytest.approx(total, rel=0.01, abs=1e-3)
        assert all(0 <= one < 1 for one in found)
        by_size = [one for _, one in sorted(zip(SIZES, found, strict=True))]
        assert by_size == sorted(by_size)
        found = perturbed(found, SIZES, total, FREE, 0.35 * (1 - step / 100), generator)


def test_layers_at_their_limit_leave_the_rest_to_others() -> None:
    limits = [1.0, 0.3, 1.0, 1.0, 1.0]
    generator = random.Random(0)

    found = first_sparsities(SIZES, 0.6, limits, generator)
    for _ in range(50):
        assert found[1] <= 0.3 + 1e-9
        assert total_of(found, SIZES) == pytest.approx(0.6, rel=0.01)
        found = perturbed(found, SIZES, 0.6, limits, 0.3, generator)


def test_all_layers_at_their_limit_are_a_result() -> None:
    assert first_sparsities([10, 10], 0.5, [0.5, 0.5], random.Random(0)) == [0.5, 0.5]


def test_the_same_seed_gives_the_same_vectors() -> None:
    one, other = (
        perturbed([0.2, 0.5], [10, 20], 0.4, [1.0, 1.0], 0.3, random.Random(7)) for _ in range(2)
    )

    assert one == other


def test_better_scores_are_accepted_and_worse_ones_by_chance() -> None:
    generator = random.Random(0)
    worse = [accepts(0.0, 10.0, 20.0, generator) for _ in range(1000)]

    assert accepts(1.0, 0.0, 20.0, generator)
    assert not accepts(math.nan, 0.0, 20.0, generator)
    assert accepts(1.0, math.nan, 20.0, generator)
    # exp(-10 / 20) = 0.607; three standard deviations of 1000 draws are 0.046.
    assert abs(sum(worse) / 1000 - math.exp(-0.5)) < 0.046
