"""What the dispatcher counts and traces."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from svc_common.clock import ManualClock
from svc_common.telemetry.metrics import Registry
from svc_common.telemetry.tracing import TrialSpan
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.commands import Generate
from svc_dispatcher.domain.values import Position, Suggestion
from svc_dispatcher.telemetry import Witness

AT = Position(3, 0)


class Notebook:
    """A `Tracer` that keeps what it is told."""

    def __init__(self) -> None:
        self.spans: list[TrialSpan] = []

    def record(self, span: TrialSpan) -> None:
        self.spans.append(span)

    def traceparent(self, experiment_id: str, parameter_id: int, *path: str | int) -> str:
        return ""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


@pytest.fixture
def witness(clock: ManualClock, registry: Registry, notebook: Notebook) -> Witness:
    return Witness(clock, registry, notebook)


def figures(registry: Registry) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(registry.render())
        for sample in family.samples
    }


def answer(request_id: str, *ids: int) -> answers.Generated:
    return answers.Generated(AT, request_id, tuple(Suggestion(n, {"x": n}, None) for n in ids))


def test_an_answer_is_timed_and_is_a_part_of_each_trial(
    witness: Witness, clock: ManualClock, registry: Registry, notebook: Notebook
) -> None:
    witness.sent("e", [Generate(AT, "1-0", (7, 8))])
    clock.advance(0.25)
    witness.heard("e", [answer("1-0", 7, 8)])

    found = figures(registry)
    assert found["nni_algorithm_ask_seconds_sum", ()] == pytest.approx(0.25)
    assert found["nni_parameters_generated_total", ()] == 2
    assert [(span.parameter_id, span.end_ms - span.start_ms) for span in notebook.spans] == [
        (7, 250),
        (8, 250),
    ]
    assert {span.parent for span in notebook.spans} == {()}


def test_answers_that_the_log_has_are_not_counted_again(
    witness: Witness, registry: Registry, notebook: Notebook
) -> None:
    witness.sent("e", [Generate(AT, "1-0", (7,), replayed=True)])
    witness.heard("e", [answer("1-0", 7)])

    assert figures(registry)["nni_parameters_generated_total", ()] == 0
    assert notebook.spans == []


def test_parameters_that_come_later_are_counted_but_not_timed(
    witness: Witness, registry: Registry
) -> None:
    witness.heard("e", [answer("", 7)])

    found = figures(registry)
    assert found["nni_parameters_generated_total", ()] == 1
    assert ("nni_algorithm_ask_seconds_count", ()) not in found


def test_advice_and_failures_are_counted(witness: Witness, registry: Registry) -> None:
    witness.heard(
        "e",
        [
            answers.StopAdvised(AT, "t"),
            answers.CallFailed(AT, "receive_trial_result", "Traceback", skipped=True),
        ],
    )

    found = figures(registry)
    assert found["nni_stops_advised_total", ()] == 1
    assert found["nni_algorithm_failures_total", ("receive_trial_result",)] == 1


def test_hosts_are_counted_as_they_come_and_go(witness: Witness, registry: Registry) -> None:
    witness.host_started()
    witness.host_started()
    witness.sent("e", [Generate(AT, "1-0", (7,))])
    witness.host_died()
    witness.host_closed("e")
    witness.heard("e", [answer("1-0", 7)])

    found = figures(registry)
    assert found["nni_algorithm_hosts", ()] == 1
    assert found["nni_algorithm_host_starts_total", ()] == 2
    assert found["nni_algorithm_host_deaths_total", ()] == 1
    assert ("nni_algorithm_ask_seconds_count", ()) not in found, "its answer was not waited for"
