"""Metrics in the order of their log, each with a fixed number."""

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import event_pb2
from nni_wire.values import to_value
from svc_manager.usecases.metric_cache import ExperimentMetrics


def reported(trial_id: str, sequence: int, *, final: bool = False) -> event_pb2.Event:
    event = event_pb2.Event()
    event.metric_reported.trial_id = trial_id
    metric = event.metric_reported.metric
    metric.sequence = sequence
    metric.type = metric_pb2.METRIC_TYPE_FINAL if final else metric_pb2.METRIC_TYPE_PERIODICAL
    return event


def lost(trial_id: str) -> event_pb2.Event:
    event = event_pb2.Event()
    event.trial_lost.trial_id = trial_id
    return event


def test_a_lost_attempt_takes_its_metrics_along_and_shifts_no_other() -> None:
    book = ExperimentMetrics()
    for event in (reported("a", 0), reported("b", 0), reported("a", 1), reported("b", 1)):
        book.add(event)

    book.add(lost("a"))
    book.add(reported("a", 0))

    assert [(number, row.trial_id) for number, row in book.rows] == [(2, "b"), (4, "b"), (5, "a")]
    assert [number for number, _ in book.by_trial["a"]] == [5]


def test_a_result_of_a_lost_attempt_stays() -> None:
    book = ExperimentMetrics()
    for event in (reported("a", 0), reported("a", 1, final=True), lost("a")):
        book.add(event)

    assert [number for number, _ in book.rows] == [2]


def test_ranges_hold_the_finite_intermediate_numbers_of_the_last_attempt() -> None:
    book = ExperimentMetrics()
    values = [0.5, float("nan"), {"default": 0.25, "loss": 3, "note": "text"}, 0.75]
    for sequence, value in enumerate(values):
        event = reported("a", sequence)
        event.metric_reported.metric.value.CopyFrom(to_value(value))
        book.add(event)
    result = reported("a", 0, final=True)
    result.metric_reported.metric.value.CopyFrom(to_value(9.0))
    book.add(result)

    before = dict(book.ranges["a"])
    book.add(lost("a"))

    assert before == {"default": (0.25, 0.75), "loss": (3.0, 3.0)}
    assert book.ranges == {}
