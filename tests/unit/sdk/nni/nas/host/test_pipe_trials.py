"""Trials of an exploration as lines on two pipes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from nni.hpo.host.command_pipe import CommandPipe
from nni.nas.execution.trial_platform import (
    CandidateAdded,
    CandidateEnded,
    CandidateLost,
    CandidateMetric,
    CandidateScheduled,
    PlatformClosed,
    PlatformLimits,
    PlatformOpened,
)
from nni.nas.host.pipe_trials import PipeTrials


class Service:
    """Other end of the pipes."""

    def __init__(self) -> None:
        child_in, self._input = os.pipe()
        self._output, child_out = os.pipe()
        self.pipe = CommandPipe(child_in, child_out)
        self._descriptors = [child_in, self._output, child_out]

    def send(self, *lines: dict[str, Any]) -> None:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        os.write(self._input, text.encode())

    def close_input(self) -> None:
        os.close(self._input)

    def received(self) -> list[dict[str, Any]]:
        """Return the lines of the strategy that are in the pipe."""
        return [json.loads(line) for line in os.read(self._output, 65_536).splitlines()]

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


def trials_of(service: Service) -> PipeTrials:
    return PipeTrials(service.pipe, service.pipe.commands())


def test_candidates_and_stops_are_lines(service: Service) -> None:
    trials = trials_of(service)

    trials.add("k", {"sample": {"width": 3}})
    trials.kill("t")

    assert service.received() == [
        {"candidate": "k", "parameters": {"sample": {"width": 3}}},
        {"kill": "t"},
    ]


def test_past_events_end_where_the_log_ended_and_the_rest_follows(service: Service) -> None:
    trials = trials_of(service)
    service.send(
        {"op": "added", "key": "k", "parameters": {"x": 1}},
        {"op": "scheduled", "key": "k", "trial_id": "t"},
        {"op": "live"},
        {"op": "lost", "key": "k"},
        {"op": "metric", "key": "k", "value": 0.5, "is_final": True},
        {"op": "ended", "key": "k", "succeeded": True},
        {"op": "closed", "reason": "NO_MORE_TRIAL", "is_final": False},
        {"op": "opened"},
    )
    service.close_input()

    past = list(trials.events(follow=False))
    live = list(trials.events(follow=True))

    assert past == [CandidateAdded("k", {"x": 1}), CandidateScheduled("k", "t")]
    assert live == [
        CandidateLost("k"),
        CandidateMetric("k", 0.5, is_final=True),
        CandidateEnded("k", succeeded=True),
        PlatformClosed("NO_MORE_TRIAL", is_final=False),
        PlatformOpened(),
    ]


def test_parameters_of_an_earlier_process_are_kept_until_they_are_read(service: Service) -> None:
    trials = trials_of(service)
    service.send(
        {"op": "added", "key": "k", "parameters": {"x": 1}},
        {"op": "scheduled", "key": "k", "trial_id": "t"},
    )
    service.close_input()
    list(trials.events(follow=False))

    assert trials.parameters("t") == {"x": 1}


def test_number_of_trials_is_passed_on(service: Service) -> None:
    trials = trials_of(service)
    service.send({"op": "concurrency", "value": 4})
    service.close_input()

    assert list(trials.events(follow=True)) == [PlatformLimits(None, 4)]


def test_service_opens_and_closes_the_experiment(service: Service) -> None:
    trials = trials_of(service)

    trials.close()

    assert trials.open("exp") == "exp"
    service.close_input()
