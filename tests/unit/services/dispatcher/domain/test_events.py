"""Groups of the events that matter to an algorithm."""

import dataclasses
from typing import get_args

from svc_common.experiment_events import events as shared
from svc_dispatcher.domain import events

GROUPS = (events.TrialEvent, events.AlgorithmEvent, events.ExperimentEvent)


def test_every_event_is_in_exactly_one_group() -> None:
    grouped = [kind for group in GROUPS for kind in get_args(group)]
    declared = {
        kind
        for kind in vars(events).values()
        if dataclasses.is_dataclass(kind) and kind.__module__ in (events.__name__, shared.__name__)
    }

    assert len(grouped) == len(set(grouped))
    assert set(grouped) == declared == set(get_args(events.Event))


def test_generated_parameters_end_and_promise_nothing_unless_they_say_so() -> None:
    generated = events.ParametersGenerated("r", ())

    assert (generated.exhausted, generated.deferred, generated.based_on) == (False, 0, None)
    assert (generated.proposers, generated.labels) == ((), frozenset())


def test_stop_is_that_of_the_user_unless_the_event_says_otherwise() -> None:
    assert not events.TrialStopRequested("t").early


def test_time_of_an_end_is_unknown_unless_the_event_has_it() -> None:
    assert events.TrialEnded("t", "FAILED").ended_at_ms == 0
