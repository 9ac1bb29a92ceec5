from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from nni.integrations._hydra_overrides import SweptOverrides


def swept(*texts: str) -> SweptOverrides:
    return SweptOverrides(OverridesParser.create().parse_overrides(list(texts)))


@pytest.mark.parametrize(
    ("text", "kind", "values", "value", "written"),
    [
        ("x=interval(0,1)", "uniform", [0, 1], 0.5, "0.5"),
        ("x=tag(log,interval(0.01,1))", "loguniform", [0.01, 1], 0.1, "0.1"),
        ("x=int(interval(1,8))", "randint", [1, 9], 8, "8"),
        ("x=tag(log,int(interval(1,8)))", "qloguniform", [1, 8, 1], 4.0, "4"),
        ("x=range(1,5)", "randint", [1, 5], 4, "4"),
        ("x=range(1,6,2)", "choice", [0, 1, 2], 1, "3"),
        ("x=range(0.5,2)", "choice", [0, 1], 1, "1.5"),
        ("x=choice(a,'b c')", "choice", [0, 1], 1, "b\\ c"),
        ("x=1,2,3", "choice", [0, 1, 2], 2, "3"),
    ],
)
def test_a_sweep_has_its_entry_and_its_text(
    text: str, kind: str, values: list[Any], value: Any, written: str
) -> None:
    overrides = swept(text)

    assert overrides.search_space() == {"x": {"_type": kind, "_value": values}}
    assert overrides.values({"x": value}) == {"x": written}


def test_a_job_has_fixed_overrides_groups_and_added_keys() -> None:
    overrides = swept("model.depth=3", "db=mysql,postgres", "+extra=interval(0,1)")

    assert overrides.job({"db": 1, "+extra": 0.25}) == [
        "model.depth=3",
        "db=postgres",
        "+extra=0.25",
    ]


def test_the_later_of_two_overrides_counts() -> None:
    assert swept("x=1,2", "y=1,2", "x=7").job({"y": 0}) == ["x=7", "y=1"]
    assert swept("x=7", "x=1,2").search_space().keys() == {"x"}


def test_overrides_without_a_sweep_are_an_error() -> None:
    with pytest.raises(ValueError, match="at least one override must be a sweep"):
        swept("x=1")


def test_an_unknown_tag_is_an_error() -> None:
    with pytest.raises(ValueError, match="x must have no other tag than 'log', got normal"):
        swept("x=tag(normal,interval(0,1))")
