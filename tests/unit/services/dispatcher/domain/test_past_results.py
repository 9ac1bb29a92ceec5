"""Commands that hand results and reports of earlier generations to a later one."""

from svc_dispatcher.domain import commands
from svc_dispatcher.domain.past_results import (
    PastResults,
    PastTrial,
    import_of,
    reports_to_assessor,
)
from svc_dispatcher.domain.values import Position

AT = Position(9, 0)
BEFORE = Position(3, 0)


def test_results_and_imported_data_keep_their_order() -> None:
    past = PastResults()
    past.add_trial(PastTrial("p0", 1))
    past.add_trial(PastTrial("p1", 2, "TPE"))
    past.add_data("data")
    past.add_trial(PastTrial("p2", 3, duration_s=1.5))

    assert list(past.import_commands(AT)) == [
        commands.ImportTrials(AT, (("p0", 1), ("p1", 2)), ("", "TPE")),
        commands.ImportData(AT, "data"),
        commands.ImportTrials(AT, (("p2", 3),), durations_s=(1.5,)),
    ]


def test_removed_proposers_are_not_imported() -> None:
    past = PastResults()
    past.add_trial(PastTrial("p0", 1, "TPE"))
    past.add_data("data")

    past.remove_proposers()

    assert next(past.import_commands(AT)) == import_of(AT, [PastTrial("p0", 1)])


def test_cleared_results_are_gone() -> None:
    past = PastResults()
    past.add_trial(PastTrial("p0", 1))

    past.clear()

    assert list(past.import_commands(AT)) == []


def test_reports_come_in_commands_of_limited_size() -> None:
    earlier = [
        commands.TellMetric(BEFORE, "t0", 1, 0, final=False, sequence=n, value=n, customized=False)
        for n in range(1_001)
    ]

    found = list(reports_to_assessor(earlier, AT))

    assert [len(command.reports) for command in found] == [1_000, 1]
    assert {command.position for command in found} == {AT}


def test_final_results_and_requests_are_no_reports() -> None:
    earlier: list[commands.Command] = [
        commands.Generate(BEFORE, "r0", (0,)),
        commands.TellMetric(BEFORE, "t0", 1, 0, final=True, sequence=0, value=1, customized=False),
    ]

    assert list(reports_to_assessor(earlier, AT)) == []
