from __future__ import annotations

import math
from pathlib import Path

import pytest

from nni.experiment.config.yaml_file import (
    parse_yaml,
    read_json,
    read_json_or_yaml,
    read_text,
    require_text_keys,
    to_yaml,
)
from nni.experiment.errors import ConfigError


@pytest.mark.claim("platform", 10)
@pytest.mark.claim("hpo", 52)
@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-5", 1e-5), ("1E5", 1e5), ("-2e+3", -2e3), ("1.5e3", 1500.0), (".5", 0.5), ("3.", 3.0)],
)
def test_exponents_without_a_dot_are_numbers(text: str, value: float) -> None:
    read = parse_yaml(text, "test")

    assert isinstance(read, float)
    assert read == value


@pytest.mark.parametrize(
    ("text", "value"), [("'1e-5'", "1e-5"), ("1", 1), ("e5", "e5"), ("1.2.3", "1.2.3")]
)
def test_other_scalars_stay_what_they_are(text: str, value: object) -> None:
    read = parse_yaml(text, "test")

    assert read == value
    assert type(read) is type(value)


def test_special_floats_are_read() -> None:
    assert parse_yaml(".inf", "test") == math.inf
    assert math.isnan(parse_yaml(".nan", "test"))


def test_broken_yaml_names_file_line_and_column() -> None:
    with pytest.raises(ConfigError, match=r"c\.yml: line 2, column 2"):
        parse_yaml("a: [1\nb: 2", "c.yml")


def test_key_given_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="'a' is given twice"):
        parse_yaml("a: 1\na: 2", "c.yml")


def test_tags_make_no_objects() -> None:
    with pytest.raises(ConfigError, match="no valid YAML"):
        parse_yaml("!!python/object/apply:os.getcwd []", "c.yml")


@pytest.mark.parametrize("value", [1e-5, "1e-5", "yes", "null", 1.0, {"x": [None, "0x1"]}])
def test_what_is_written_reads_back_equal(value: object) -> None:
    assert parse_yaml(to_yaml({"v": value}), "test") == {"v": value}


def test_key_that_is_no_text_is_refused_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"a\[0\].b must be a text, got 1"):
        require_text_keys({"a": [{"b": {1: 2}}]})


def test_json_and_yaml_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": 1}')
    (tmp_path / "b.yml").write_text("x: 1")

    assert read_json_or_yaml(tmp_path / "a.json", "f") == {"x": 1}
    assert read_json_or_yaml(tmp_path / "b.yml", "f") == {"x": 1}


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match=r"f must name an existing file, got '.*nope'"):
        read_text(tmp_path / "nope", "f")
    with pytest.raises(ConfigError, match="not a folder"):
        read_text(tmp_path, "f")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_text(tmp_path / "binary", "f")


def test_broken_json_names_file_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "space.json"
    path.write_text('{"x": 1,\n "y": }')

    with pytest.raises(ConfigError, match=r"space\.json: line 2, column 7 is no valid JSON"):
        read_json_or_yaml(path, "searchSpaceFile")
    with pytest.raises(ConfigError, match=r"space\.json: line 2, column 7 is no valid JSON"):
        read_json(path, "--filename")


def test_json_with_a_comma_too_many_is_read_as_yaml(tmp_path: Path) -> None:
    path = tmp_path / "space.json"
    path.write_text('{"x": [1, 2,],}')

    assert read_json_or_yaml(path, "searchSpaceFile") == {"x": [1, 2]}


def test_document_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)

    with pytest.raises(ConfigError, match=r"deep\.json"):
        read_json_or_yaml(path, "searchSpaceFile")
