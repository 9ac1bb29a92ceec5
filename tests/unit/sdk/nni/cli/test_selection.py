from __future__ import annotations

import pytest

from nni.cli.selection import one, to_stop
from nni.experiment.errors import NotFoundError, RefusedError, WrongStateError

RUNNING = {"abcd1234": 8080, "abzz9999": 8081, "x0000000": 0}


def test_nothing_named_means_the_one_that_runs() -> None:
    assert one(None, ["abcd1234"], ["abcd1234", "old00000"]) == "abcd1234"


def test_nothing_named_and_none_running_is_an_error() -> None:
    with pytest.raises(WrongStateError, match="no experiment running"):
        one(None, [], ["old00000"])


@pytest.mark.claim("platform", 43)
def test_nothing_named_and_several_running_lists_them() -> None:
    with pytest.raises(WrongStateError, match="abcd1234 abzz9999"):
        one(None, ["abcd1234", "abzz9999"], [])


def test_exact_id_wins_over_longer_ones() -> None:
    assert one("ab", ["ab", "abcd"], ["ab", "abcd"]) == "ab"


def test_start_of_one_running_wins_over_stopped_ones() -> None:
    assert one("ab", ["abcd1234"], ["abcd1234", "abzz9999"]) == "abcd1234"


def test_start_of_a_stopped_one_is_enough() -> None:
    assert one("old", ["abcd1234"], ["abcd1234", "old00000"]) == "old00000"


def test_start_of_several_lists_them() -> None:
    with pytest.raises(NotFoundError, match="abcd1234 abzz9999"):
        one("ab", ["abcd1234", "abzz9999"], [])


def test_unknown_id_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="no experiment 'nope'"):
        one("nope", ["abcd1234"], ["abcd1234"])


def stop(
    word: str | None = None, port: int | None = None, *, everything: bool = False
) -> list[str]:
    return to_stop(word, port=port, everything=everything, running=RUNNING)


@pytest.mark.claim("platform", 43)
def test_stop_without_id_stops_none_of_several() -> None:
    with pytest.raises(WrongStateError, match="abcd1234 abzz9999 x0000000"):
        stop()


@pytest.mark.claim("platform", 43)
def test_stop_all_means_every_one() -> None:
    assert stop(everything=True) == list(RUNNING)


@pytest.mark.claim("platform", 44)
def test_stop_takes_a_unique_start() -> None:
    assert stop("x0") == ["x0000000"]


@pytest.mark.claim("platform", 44)
def test_stop_by_an_ambiguous_start_names_the_ids() -> None:
    with pytest.raises(NotFoundError, match="abcd1234 abzz9999"):
        stop("ab")


@pytest.mark.claim("platform", 44)
def test_stop_with_a_star_means_all_that_start_so() -> None:
    assert stop("ab*") == ["abcd1234", "abzz9999"]
    with pytest.raises(NotFoundError, match="starts with nope"):
        stop("nope*")


@pytest.mark.claim("platform", 44)
def test_stop_by_port() -> None:
    assert stop(port=8081) == ["abzz9999"]
    with pytest.raises(NotFoundError, match="on port 9999"):
        stop(port=9999)


def test_stop_of_an_unknown_id_is_an_error() -> None:
    with pytest.raises(NotFoundError, match="nope"):
        stop("nope")


def test_ways_to_choose_exclude_each_other() -> None:
    with pytest.raises(RefusedError, match="exclude each other"):
        stop("x0", everything=True)


def test_stop_all_with_none_running_stops_none() -> None:
    assert to_stop(None, port=None, everything=True, running={}) == []
