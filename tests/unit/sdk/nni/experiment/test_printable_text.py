"""Text from outside, made safe for terminals."""

import json

import pytest

from nni.experiment.printable_text import (
    PrintableStream,
    printable,
    printable_json,
    printable_stream,
)

HOSTILE = "a\x1b[2Jb\x9b2Jc\u202ed\x7f\x00\re"


@pytest.mark.parametrize(
    "code", [*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x202E, 0x2066]
)
def test_no_control_character_is_left(code: int) -> None:
    assert chr(code) not in printable(f"a{chr(code)}b")
    assert chr(code) not in printable_json(json.dumps(f"a{chr(code)}b", ensure_ascii=False))


def test_escapes_show_what_was_there() -> None:
    assert printable(HOSTILE) == r"a\x1b[2Jb\x9b2Jc\u202ed\x7f\x00\x0de"


def test_text_without_control_characters_is_unchanged() -> None:
    text = "Größe: 3 µs\n\tüber 日本 🎉"

    assert printable(text) == text
    assert printable_stream(text) == text


def test_json_keeps_its_meaning() -> None:
    text = printable_json(json.dumps({"name": HOSTILE}, ensure_ascii=False))

    assert json.loads(text) == {"name": HOSTILE}
    assert "\x9b" not in text


def test_stream_keeps_colours_and_progress_bars_only() -> None:
    shown = printable_stream("\x1b[31mred\x1b[0m 50%\r\x1b]52;c;eA==\x07\x1b[2J")

    assert shown == "\x1b[31mred\x1b[0m 50%\r\\x1b]52;c;eA==\\x07\\x1b[2J"


def test_characters_and_colours_are_whole_however_the_output_is_cut() -> None:
    output = "Größe ██ 日本 \x1b[1;31mred\x1b[0m\n".encode()

    for size in range(1, len(output)):
        stream = PrintableStream()
        pieces = [output[at : at + size] for at in range(0, len(output), size)]
        printed = "".join([*map(stream.add, pieces), stream.end()])
        assert printed == output.decode()


def test_what_the_end_of_the_output_cuts_is_shown() -> None:
    stream = PrintableStream()

    assert stream.add("é\x1b[3".encode() + "é".encode()[:1]) == "é"
    assert stream.end() == "\\x1b[3\N{REPLACEMENT CHARACTER}"
    assert stream.add(b"\x1b[3") == ""
    assert stream.end() == "\\x1b[3"
