from __future__ import annotations

from pathlib import PurePath

import pytest

from nni.experiment.config.section_reader import (
    ConversionFindings,
    SectionReader,
    is_empty,
    without_nones,
)


def reader(**fields: object) -> SectionReader:
    return SectionReader(fields, "trial", ConversionFindings())


def problems(section: SectionReader) -> list[str]:
    return list(map(str, section.findings.problems))


def test_fields_are_read_by_type() -> None:
    section = reader(a="text", b=3, c=True, d="2h", e="0,2", f="one")

    assert section.text("a") == "text"
    assert section.integer("b") == 3
    assert section.flag("c") is True
    assert section.duration("d") == "2h"
    assert section.gpus("e") == [0, 2]
    assert section.choice("f", ("one", "two")) == "one"
    section.finish()
    assert problems(section) == []


def test_null_is_a_field_that_is_not_given() -> None:
    section = reader(a=None)

    assert section.text("a") is None
    assert not section.given("a")
    assert section.sections("a") == []
    section.section("a").finish()
    section.require("a", "for example: x")
    assert problems(section) == ["trial.a must be given (for example: x)"]


@pytest.mark.parametrize(
    ("method", "value", "problem"),
    [
        ("text", 5, "trial.a must be a text, got 5"),
        ("text", "", "trial.a must be a text, got ''"),
        ("integer", True, "trial.a must be an integer from 0 to 99999, got True"),
        ("integer", "3", "trial.a must be an integer from 0 to 99999, got '3'"),
        ("integer", -1, "trial.a must be an integer from 0 to 99999, got -1"),
        ("integer", 100_000, "trial.a must be an integer from 0 to 99999, got 100000"),
        ("flag", "yes", "trial.a must be true or false, got 'yes'"),
        ("duration", "5w", "trial.a must be a number followed by s, m, h or d"),
        ("duration", 5, "trial.a must be a text, got 5"),
        ("gpus", "a", "trial.a must be GPU numbers"),
        ("path", ["a"], "trial.a must be a text, got ['a']"),
        ("sections", {}, "trial.a must be a list, got {}"),
        ("section", "b", "trial.a must be a mapping of fields to values, got 'b'"),
    ],
)
def test_wrong_value_is_a_problem(method: str, value: object, problem: str) -> None:
    section = reader(a=value)

    result = getattr(section, method)("a")

    assert result in ([], None) or method == "section"
    assert len(problems(section)) == 1
    assert problems(section)[0].startswith(problem)


def test_integer_without_upper_bound_says_so() -> None:
    section = reader(a=0)

    assert section.integer("a", least=1, most=None) is None
    assert problems(section) == ["trial.a must be an integer >= 1, got 0"]


def test_wrong_choice_is_answered_with_the_closest_one() -> None:
    section = reader(a="locl")

    assert section.choice("a", ("local", "remote")) is None
    assert problems(section) == [
        "trial.a must be one of local, remote, got 'locl' (did you mean local?)"
    ]


def test_secret_is_not_repeated_in_its_problem() -> None:
    section = reader(passwd=123456)

    assert section.text("passwd", secret=True) is None
    assert problems(section) == ["trial.passwd must be a text (quote it)"]


def test_relative_path_is_joined_to_the_folder_of_the_findings() -> None:
    fields = {"a": "code", "b": "/abs", "c": "~/home"}
    section = SectionReader(fields, "", ConversionFindings(PurePath("/folder")))

    assert [section.path(name) for name in "abc"] == ["/folder/code", "/abs", "~/home"]


def test_path_stays_as_written_without_a_folder() -> None:
    assert reader(a="code").path("a") == "code"


def test_sections_of_a_list_know_their_place() -> None:
    section = reader(roles=[{"name": 1}, None])

    first, second = section.sections("roles")
    first.text("name")
    second.require("name")

    assert problems(section) == [
        "trial.roles[0].name must be a text, got 1",
        "trial.roles[1].name must be given",
    ]


def test_dropped_field_is_named_with_the_reason() -> None:
    section = reader(a=1, b=2)

    section.drop("a")
    section.drop("b", "use c")
    section.drop("missing")
    section.finish()

    assert section.findings.dropped == ["trial.a", "trial.b (use c)"]
    assert problems(section) == []


def test_field_that_was_never_asked_for_is_unknown() -> None:
    section = reader(comand="x", odd=1, gpuNumber=1)
    section.raw("command")
    section.raw("gpuNum")

    section.finish({"gpuNumber": "write gpuNum"})

    assert problems(section) == [
        "trial.comand is no field of schema v1 (did you mean command?)",
        "trial.odd is no field of schema v1 (known are: command, gpuNum)",
        "trial.gpuNumber is no field of schema v1 (write gpuNum)",
    ]


@pytest.mark.parametrize("value", [None, {}, [], {"a": None}, [{"a": None, "b": [None]}]])
def test_value_with_nothing_but_null_is_empty(value: object) -> None:
    assert is_empty(value)


@pytest.mark.parametrize("value", [0, "", False, {"a": 0}, [{"a": None}, 1]])
def test_value_with_anything_else_is_not_empty(value: object) -> None:
    assert not is_empty(value)


def test_fields_without_a_value_are_left_out() -> None:
    assert without_nones({"a": None, "b": 0, "c": False}) == {"b": 0, "c": False}
