"""The page about the benchmark does what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from nni_benchmark.command import _parser

PAGE = (Path(__file__).parents[3] / "docs" / "benchmark.md").read_text("utf-8")


def test_example_in_python_prints_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    exec(compile(code, "benchmark.md", "exec"), {})

    assert "Mean rank, flat @20: 1 problems" in capsys.readouterr().out


def test_command_lines_are_understood() -> None:
    lines = re.findall(r"^python -m nni\.hpo\.benchmark (.*)$", PAGE, re.MULTILINE)

    assert len(lines) == 6
    for line in lines:
        assert callable(_parser().parse_args(shlex.split(line)).command)
