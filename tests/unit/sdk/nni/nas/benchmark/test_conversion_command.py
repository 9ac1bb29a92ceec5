"""Command line of the converters."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni.nas.benchmark.conversion_command import run_conversion
from nni.nas.benchmark.files import load_schema
from nni.nas.benchmark.nlp import NLP_SCHEMA, NlpTrialConfig, NlpTrialStats
from nni.nas.benchmark.writer import BenchmarkWriter


def convert(source: Path, writer: BenchmarkWriter) -> None:
    if not source.read_text():
        raise ValueError(f"{source} is empty")
    writer.add(NlpTrialStats(NlpTrialConfig({}, source.read_text()), 1.0, 1.0, 1.0, 1.0))


def test_converted_file_is_where_the_queries_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBENCHMARK_DIR", str(tmp_path / "databases"))
    (tmp_path / "log").write_text("ptb")

    status = run_conversion(convert, NLP_SCHEMA, "a log", [str(tmp_path / "log")])

    assert status == 0
    assert next(load_schema(NLP_SCHEMA).query({}))["config"]["dataset"] == "ptb"


@pytest.mark.parametrize(("name", "reason"), [("missing", "there is no"), ("empty", "is empty")])
def test_wrong_source_is_reported_and_leaves_no_file(
    name: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").touch()
    target = tmp_path / "target" / "nlp.db"

    status = run_conversion(
        convert, NLP_SCHEMA, "a log", [str(tmp_path / name), "--target", str(target)]
    )

    assert status == 1
    assert reason in capsys.readouterr().err
    assert not target.exists()
