from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from nni.cli import output
from nni.cli.output import Messages, json_text, local_time, table


def test_messages_say_their_kind_and_go_to_the_right_stream(
    capsys: pytest.CaptureFixture[str],
) -> None:
    messages = Messages()
    messages.info("a")
    messages.warning("b")
    messages.error("c")

    captured = capsys.readouterr()

    assert captured.out == "INFO: a\n"
    assert captured.err == "WARNING: b\nERROR: c\n"


def test_messages_are_kept_for_the_log_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = Messages()
    messages.info("a")
    messages.error("c")

    messages.save(tmp_path / "log")
    messages.save(tmp_path / "log")

    assert (tmp_path / "log" / "nnictl_stdout.log").read_text() == "INFO: a\n"
    assert (tmp_path / "log" / "nnictl_stderr.log").read_text() == "ERROR: c\n"
    assert capsys.readouterr().out == "INFO: a\n"


@pytest.mark.claim("platform", 26)
def test_json_holds_no_bare_nan() -> None:
    value = {"a": [float("nan"), float("inf"), -float("inf"), 1.5], "b": (1, None)}

    assert json.loads(json_text(value)) == {
        "a": ["NaN", "Infinity", "-Infinity", 1.5],
        "b": [1, None],
    }


def test_table_aligns_and_never_wraps() -> None:
    text = table(("Id", "Name"), [("abc", "x" * 300), ("d", None)])

    lines = text.splitlines()
    assert lines == ["Id   Name", "abc  " + "x" * 300, "d    -"]


def test_line_breaks_in_a_cell_become_spaces() -> None:
    assert table(("A",), [("one\n  two",)]).splitlines()[1] == "one two"


def test_missing_times_are_said() -> None:
    assert local_time(None) == "N/A"
    assert local_time("N/A") == "N/A"
    assert len(local_time(0)) == len("1970-01-01 00:00:00")


@pytest.mark.parametrize("stream", ["out", "err"])
def test_messages_send_no_control_characters(
    capsys: pytest.CaptureFixture[str], stream: str
) -> None:
    messages = Messages()
    messages.line("name \x1b]0;owned\x07")
    messages.error("name \x1b]0;owned\x07")

    captured = getattr(capsys.readouterr(), stream)

    assert "\x1b" not in captured
    assert r"\x1b]0;owned\x07" in captured


def test_cells_of_tables_and_json_have_no_control_characters() -> None:
    assert "\x1b" not in table(("Name",), [("a\x1b[2Jb",)])
    assert "\x9b" not in json_text({"name": "a\x9b2J"})
    assert json_text("a\x1b[2J\x7f", indent=None) == r'"a\u001b[2J\u007f"'


def test_only_this_module_writes_text_to_the_terminal() -> None:
    call = re.compile(r"\b(typer\.echo|print|sys\.std(out|err)\.write)\(")
    # main and app: texts of their own; top: clears the screen; logs: output made safe there.
    allowed = {"output.py", "main.py", "app.py", "top.py", "logs.py"}

    writers = {
        path.name
        for path in Path(output.__file__).parent.rglob("*.py")
        if call.search(path.read_text())
    }

    assert writers <= allowed


def test_characters_that_the_terminal_lacks_are_escaped_as_in_json(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii"))

    output.write_json(["\u2605", "\u00e9"])
    output.echo("\u2605")

    text = written.getvalue().decode()
    assert text == '[\n  "\\u2605",\n  "\\u00e9"\n]\n\\u2605\n'
