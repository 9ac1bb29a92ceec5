from __future__ import annotations

import ast

import pytest

from nni.annotation.source_text import Edit, Position, SourceText, span


def replaced(source: SourceText, name: str, code: str) -> SourceText:
    """Replace the value of the only assignment to `name`."""
    (value,) = (
        node.value
        for node in ast.walk(source.parse())
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    )
    return source.edited([Edit(*span(value), code)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "x = new\n"),
        ("ä = 'ü'; x = 1  # why\n", "ä = 'ü'; x = new  # why\n"),
        ("x = (\n  1,\n)\ny = 2\n", "x = (new\n\n)\ny = 2\n"),
        ("a = 1\r\nx = [\r\n  1]\r\ny = 2", "a = 1\r\nx = (new\r\n)\r\ny = 2"),
        ("a = '''\f\n'''\nx = 1\f\ny = 2\n", "a = '''\f\n'''\nx = new\f\ny = 2\n"),
        ("x = 1", "x = new"),
    ],
)
def test_only_the_span_changes_and_lines_keep_their_numbers(before: str, after: str) -> None:
    assert replaced(SourceText(before), "x", "new").text == after


def test_insertion_comes_out_before_a_replacement_at_its_place() -> None:
    start, end = Position(1, 0), Position(1, 1)

    edited = SourceText("a + b\n").edited([Edit(start, start, "c; "), Edit(start, end, "A")])

    assert edited.text == "c; A + b\n"


def test_edits_of_one_line_do_not_disturb_each_other() -> None:
    edits = [
        Edit(Position(1, 0), Position(1, 1), "long name"),
        Edit(Position(1, 4), Position(2, 1), "two"),
        Edit(Position(2, 4), Position(2, 5), "three"),
    ]

    assert SourceText("a + (b\nc + d\n").edited(edits).text == "long name + (two\n) + three\n"


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfx = '\xc3\xa4'\n",
        b"# -*- coding: latin-1 -*-\nx = '\xe4'\n",
        b"x = 1\r\ny = 2\r\n",
    ],
)
def test_encoding_and_line_ends_stay(content: bytes) -> None:
    assert SourceText.decode(content).encode() == content


@pytest.mark.parametrize(
    "content", [b"x = '\xff'\n", b"# coding: klingon\n", b"# coding: ascii\nx = '\xe4'\n"]
)
def test_bytes_that_are_no_text_are_refused(content: bytes) -> None:
    with pytest.raises(SyntaxError):
        SourceText.decode(content)


def test_program_is_checked_as_a_whole() -> None:
    source = SourceText("return 1\n")

    source.parse()
    with pytest.raises(SyntaxError, match="outside function"):
        source.check()
