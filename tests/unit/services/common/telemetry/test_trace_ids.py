import pytest

from svc_common.telemetry.trace_ids import (
    TraceParent,
    parse_traceparent,
    span_id,
    trace_text,
    trial_trace_id,
)


def test_trace_id_follows_from_experiment_and_parameter_id() -> None:
    assert trial_trace_id("exp1", 3) == trial_trace_id("exp1", 3)
    assert span_id("exp1", 3, "attempt", 2) == span_id("exp1", 3, "attempt", 2)


def test_other_trials_and_other_spans_have_other_ids() -> None:
    traces = {trial_trace_id(e, p) for e in ("exp1", "exp2") for p in range(50)}
    spans = {span_id("exp1", 3, *path) for path in ((), ("a",), ("a", 1), ("a", 1, "b"))}

    assert (len(traces), len(spans)) == (100, 4)


def test_a_trace_context_is_read_as_it_was_written() -> None:
    for sampled in (True, False):
        parent = TraceParent(trial_trace_id("e", 1), span_id("e", 1), sampled)

        assert parse_traceparent(parent.text()) == parent


@pytest.mark.parametrize("text", ["", "00-1-2-01", "ff" * 30, "01-" + "0" * 32 + "-" + "0" * 16])
def test_malformed_trace_context_is_none(text: str) -> None:
    assert parse_traceparent(text) is None


def test_a_trace_is_shown_as_32_digits() -> None:
    assert len(trace_text("e", 1)) == 32
