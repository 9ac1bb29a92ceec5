import datetime as dt
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from pathlib import Path, PureWindowsPath
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from nni.common.serializer.standard_values import standard_form, standard_value


class Color(Enum):
    RED = 1


class Mode(Flag):
    READ = 1
    WRITE = 2


class Half(dt.tzinfo):
    def utcoffset(self, when: dt.datetime | None) -> dt.timedelta:
        del when
        return dt.timedelta(minutes=30)

    def dst(self, when: dt.datetime | None) -> None:
        del when

    def tzname(self, when: dt.datetime | None) -> str:
        del when
        return "half an hour"


def same(value: Any, suffix: str) -> Any:
    del suffix
    return value


NAIVE = dt.datetime(2020, 1, 2, 3)  # noqa: DTZ001 - without a zone, as users write them
INSTANT = {"year": 2020, "month": 1, "day": 2, "hour": 3}


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (Path("/a/b"), {"__pathlib__": "/a/b"}),
        (dt.date(2020, 1, 2), {"__date__": None, "year": 2020, "month": 1, "day": 2}),
        (NAIVE, {"__datetime__": None, **INSTANT}),
        (
            dt.datetime(2020, 1, 2, 3, tzinfo=dt.UTC),
            {"__datetime__": None, **INSTANT, "tzinfo": "UTC", "is_dst": False},
        ),
        (dt.time(3, 4, 5), {"__time__": None, "hour": 3, "minute": 4, "second": 5}),
        (
            dt.timedelta(1, 3, 4),
            {"__timedelta__": None, "days": 1, "seconds": 3, "microseconds": 4},
        ),
        (1 + 2j, {"__complex__": [1.0, 2.0]}),
        ({2, 1}, {"__set__": [1, 2]}),
        ({"a", 1}, {"__set__": [1, "a"]}),
        (Decimal("1.50"), {"__decimal__": "1.50"}),
        (Fraction(1, 3), {"__fraction__": True, "numerator": 1, "denominator": 3}),
        (slice(1, 2), {"__slice__": True, "start": 1, "stop": 2, "step": None}),
        (b"abc", {"__bytes_utf8__": "abc"}),
        (b"\xff\x00", {"__bytes_b64__": "/wA="}),
        (Color.RED, {"__enum__": {"__enum_instance_type__": [__name__, "Color"], "name": "RED"}}),
    ],
)
def test_the_form_is_that_of_json_tricks_and_leads_back(value: Any, form: dict[str, Any]) -> None:
    assert standard_form(value, same) == form
    assert standard_value(form) == value


@pytest.mark.parametrize(
    "zone",
    [
        ZoneInfo("Europe/Oslo"),
        dt.timezone(-dt.timedelta(hours=2, minutes=30)),
        dt.timezone(dt.timedelta(hours=9)),
    ],
)
def test_time_zones_survive(zone: dt.tzinfo) -> None:
    instant = dt.datetime(2020, 10, 25, 2, 30, tzinfo=zone, fold=1)

    form = standard_form(instant, same)

    assert form is not None
    made = standard_value(form)
    assert (made, made.tzinfo, made.fold) == (instant, zone, 1)


def test_what_the_forms_cannot_express_has_none() -> None:
    local = Enum("local", ["A"], module="__main__")

    assert standard_form(dt.datetime(2020, 1, 1, tzinfo=Half()), same) is None
    assert standard_form(local["A"], same) is None
    assert standard_form(frozenset({1}), same) is None


def test_other_objects_stay() -> None:
    assert standard_value({"a": 1}) == {"a": 1}


def test_flags_together_have_no_form_since_no_member_has_their_name() -> None:
    assert standard_form(Mode.READ, same) is not None
    assert standard_form(Mode.READ | Mode.WRITE, same) is None
    assert standard_form(Mode(0), same) is None


@pytest.mark.parametrize("name", ["UTCX", "UTC+1", "UTC+01:02:03"])
def test_zone_of_another_name_has_no_form(name: str) -> None:
    zone = dt.timezone(dt.timedelta(hours=1), name)

    assert standard_form(dt.datetime(2020, 1, 1, tzinfo=zone), same) is None


def test_moment_of_a_subclass_has_no_form_which_would_lose_its_parts() -> None:
    pd: Any = pytest.importorskip("pandas")

    for value in (pd.Timestamp("2020-01-01T00:00:00.123456789"), pd.NaT, pd.Timedelta(1, "ns")):
        assert standard_form(value, same) is None


def test_pure_path_of_another_system_has_no_form() -> None:
    assert standard_form(PureWindowsPath("C:\\data"), same) is None


def test_tuples_in_a_set_are_read_as_tuples() -> None:
    assert standard_value({"__set__": [[1, [2, 3]], [4, []]]}) == {(1, (2, 3)), (4, ())}
