"""Urgency of commands."""

import pytest

from svc_dispatcher.domain import commands
from svc_dispatcher.domain.values import Position

AT = Position(1, 0)


@pytest.mark.parametrize(("final", "urgent"), [(False, True), (True, False)])
def test_intermediate_result_is_urgent_since_it_may_stop_the_trial(
    final: bool, urgent: bool
) -> None:
    assert commands.TellMetric(AT, "t", 1, 0, final, 0, None, False).urgent is urgent


def test_only_commands_with_an_awaited_answer_are_urgent() -> None:
    made: list[commands.Command] = [
        commands.Generate(AT, "r", (0,)),
        commands.Recorded(AT, ()),
        commands.TellEnd(AT, "t", 0, "FAILED", False),
        commands.ImportData(AT, None),
        commands.ImportTrials(AT, ()),
        commands.ImportCurves(AT, ()),
        commands.ImportReports(AT, ()),
        commands.UpdateSearchSpace(AT, None),
        commands.AddCustomized(AT, 0, None),
    ]

    assert [type(command) for command in made if command.urgent] == [commands.Generate]
    assert commands.Initialize.urgent


def test_request_is_answered_unless_it_is_replayed() -> None:
    assert not commands.Generate(AT, "r", (0,)).replayed


def test_report_of_a_trial_without_attempt_is_of_none() -> None:
    report = commands.PastReport("t", end_state="FAILED")

    assert (report.attempt, report.sequence, report.value) == (0, 0, None)
