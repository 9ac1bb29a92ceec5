"""What running trials are taken for."""

import pytest

from nni.hpo.tuners.density.liars import LIARS, Extent
from nni.hpo.tuners.density.rankings import Outcome


@pytest.mark.parametrize(
    ("kind", "lie"), [("min", (1.0, -4.0)), ("max", (3.0, 2.0)), ("mean", (2.0, -1.0))]
)
def test_lie_is_taken_per_objective(kind: str, lie: tuple[float, ...]) -> None:
    extent = Extent()
    for losses in [(1.0, 2.0), (3.0, -4.0)]:
        extent.add(Outcome(losses))

    assert extent.lie(kind) == Outcome(lie)


def test_what_breaks_a_limit_is_no_part_of_a_lie() -> None:
    extent = Extent()
    extent.add(Outcome((5.0,)))
    extent.add(Outcome((-100.0,), 1.0))

    assert extent.lie("min") == Outcome((5.0,))


def test_lie_is_the_worst_while_nothing_keeps_the_limits() -> None:
    extent = Extent()
    extent.add(Outcome((5.0,), 1.0))

    assert extent.lie("min").excess > 1e300


def test_a_mean_is_over_all_results_that_keep_the_limits() -> None:
    extent = Extent()
    for loss in (1.0, 2.0, 6.0):
        extent.add(Outcome((loss,), 0.0))

    assert extent.count == 3
    assert [extent.lie(kind).losses for kind in LIARS] == [(1.0,), (6.0,), (3.0,)]


def test_results_have_as_many_losses_as_those_before() -> None:
    extent = Extent()
    extent.add(Outcome((1.0, 2.0)))

    with pytest.raises(ValueError, match="shorter"):
        extent.add(Outcome((3.0,)))
