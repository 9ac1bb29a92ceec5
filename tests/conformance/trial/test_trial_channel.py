"""Contract of every `nni.trial.ports.TrialChannel` inside an experiment."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nni.trial.channel import SocketTrialChannel
from nni.trial.ports import TrialChannel
from tests.support.trial_agent import TOKEN, TrialAgent
from tests.support.trial_channels import InMemoryTrialChannel

PARAMETERS = [{"lr": 0.1, "net": {"layers": [1, 2.0, True, None, "ä"]}}, {"lr": 0.2}]


@dataclass(frozen=True, slots=True)
class Subject:
    """A channel, and what has arrived at its other end."""

    channel: TrialChannel
    arrived: Callable[[], list[tuple[str, object]]]


@pytest.fixture(params=["memory", "socket"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    if request.param == "memory":
        memory = InMemoryTrialChannel(*PARAMETERS)
        yield Subject(memory, lambda: [*memory.metrics])
        return
    with TrialAgent(tmp_path) as agent:
        agent.parameters = [*PARAMETERS]
        channel = SocketTrialChannel(str(agent.path), TOKEN)
        yield Subject(channel, lambda: [(kind, value) for kind, _, value in agent.metrics])
        channel.close()


def test_parameters_are_the_same_at_every_call(subject: Subject) -> None:
    assert subject.channel.parameters(0) == subject.channel.parameters(0) == PARAMETERS[0]


def test_later_sets_follow_until_there_are_none(subject: Subject) -> None:
    assert [subject.channel.parameters(index) for index in (1, 2)] == [PARAMETERS[1], None]


def test_metric_has_arrived_when_the_report_returns(subject: Subject) -> None:
    subject.channel.report("PERIODICAL", {"default": 1, "k": [None]})
    assert subject.arrived() == [("PERIODICAL", {"default": 1, "k": [None]})]

    subject.channel.report("FINAL", 2)
    assert subject.arrived()[1:] == [("FINAL", 2)]


def test_metrics_arrive_as_plain_values(subject: Subject) -> None:
    subject.channel.report("FINAL", (np.float32(0.5), math.inf))

    assert subject.arrived() == [("FINAL", [0.5, math.inf])]


@pytest.mark.parametrize(("value", "error"), [({1, 2}, TypeError), ("x" * 1_000_000, ValueError)])
def test_metric_that_cannot_be_sent_leaves_the_channel_usable(
    subject: Subject, value: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        subject.channel.report("FINAL", value)

    subject.channel.report("FINAL", 1)
    assert subject.arrived() == [("FINAL", 1)]
