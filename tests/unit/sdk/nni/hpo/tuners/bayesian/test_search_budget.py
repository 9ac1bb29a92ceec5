"""Work of one ask."""

import pytest

from nni.hpo.tuners.bayesian.search_budget import search_budget


@pytest.mark.parametrize("count", [1, 10, 400, 10_000])
def test_budget_has_upper_limits_and_is_never_nothing(count: int) -> None:
    small = search_budget(count, 0.0, 5, 3)
    wide = search_budget(count, 1e9, 5, 3)

    assert (small.samples, small.climbs) == (1, 1)
    assert (wide.samples, wide.climbs) == (5, 3)


def test_budget_falls_with_the_size_of_the_model() -> None:
    few, many = (search_budget(count, 0.1, 100_000, 250) for count in (100, 400))

    assert many.samples < few.samples
    assert many.climbs <= few.climbs


def test_budget_grows_with_the_time() -> None:
    short, long = (search_budget(100, seconds, 100_000, 250) for seconds in (0.1, 0.2))

    assert long.samples == 2 * short.samples
    assert long.climbs == 2 * short.climbs
