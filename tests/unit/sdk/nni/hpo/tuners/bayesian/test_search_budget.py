"""Work of one ask."""

import pytest

from nni.hpo.tuners.bayesian.search_budget import SearchBudget, search_budget


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


@pytest.mark.parametrize(
    ("count", "seconds", "samples", "climbs"),
    [
        (1, 1.0, 20_000, 50),
        (1, 0.1, 2_000, 5),
        (1_000, 1.0, 1_041, 9),
        (1_000, 0.25, 260, 2),
        (1_000, 10.0, 10_416, 92),
        (3_000, 10.0, 1_302, 11),
    ],
)
def test_work_is_counted_so_that_it_is_the_same_on_every_machine(
    count: int, seconds: float, samples: int, climbs: int
) -> None:
    # A quarter of the time each, at 40 ns and 0.2 ns per squared result for a candidate, and 30
    # evaluations of 0.1 ms and 0.8 ns for an ascent; at most 20,000 and 50 a second.
    assert search_budget(count, seconds, 10**9, 10**9) == SearchBudget(samples, climbs, 30)
