"""Lines of the pipes to and from a strategy's process."""

from __future__ import annotations

import json

import pytest

from svc_nas.converters.process_lines import first_line, line_of, output_of
from svc_nas.domain import strategy_lines
from svc_nas.domain.reports import Candidate


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (strategy_lines.Added("k", {"x": 1}), {"op": "added", "key": "k", "parameters": {"x": 1}}),
        (strategy_lines.Scheduled("k", "t"), {"op": "scheduled", "key": "k", "trial_id": "t"}),
        (strategy_lines.Lost("k"), {"op": "lost", "key": "k"}),
        (
            strategy_lines.Measured("k", 0.5, is_final=True),
            {"op": "metric", "key": "k", "value": 0.5, "is_final": True},
        ),
        (
            strategy_lines.Ended("k", succeeded=False),
            {"op": "ended", "key": "k", "succeeded": False},
        ),
        (
            strategy_lines.Closed("DONE", is_final=True),
            {"op": "closed", "reason": "DONE", "is_final": True},
        ),
        (strategy_lines.Opened(), {"op": "opened"}),
        (strategy_lines.Resized(3), {"op": "concurrency", "value": 3}),
    ],
)
def test_event_is_one_line(line: strategy_lines.StrategyInput, fields: dict[str, object]) -> None:
    text = line_of(line)

    assert json.loads(text) == fields
    assert text.count("\n") == 1


def test_line_breaks_of_a_document_stay_inside_the_line() -> None:
    assert first_line({"document": "a\nb"}) == '{"document":"a\\nb"}\n'


@pytest.mark.parametrize(
    ("line", "output"),
    [
        (b'{"ready": true}', strategy_lines.Ready()),
        (
            b'{"candidate": "k", "parameters": {"x": 1}}',
            strategy_lines.Submitted(Candidate("k", {"x": 1})),
        ),
        (b'{"kill": "t"}', strategy_lines.StopWanted("t")),
        (b'{"exhausted": true}', strategy_lines.Exhausted()),
        (b'{"failed": "no", "traceback": ""}', strategy_lines.Failed("no")),
    ],
)
def test_line_of_the_process_has_its_meaning(
    line: bytes, output: strategy_lines.StrategyOutput
) -> None:
    assert output_of(line) == output


@pytest.mark.parametrize("line", [b"", b"[]", b'{"other": 1}', b'{"candidate": 1}'])
def test_other_lines_are_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="line"):
        output_of(line)
