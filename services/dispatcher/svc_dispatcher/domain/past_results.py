"""Results and reports of earlier generations, as commands for the host of a later one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from svc_dispatcher.domain import commands
from svc_dispatcher.domain.values import Payload, Position

REPORTS_AT_ONCE: Final = 1_000
"""Maximum reports of one `ImportReports`: a command is one message to the host."""


@dataclass(frozen=True, slots=True)
class PastTrial:
    """Trial with a result: parameters, result, tuner that proposed it, and run time."""

    parameters: Payload
    value: Payload
    proposer: str = ""
    """Label of the tuner, of several, that proposed it; else empty."""
    duration_s: float | None = None
    """None: unknown."""


class PastResults:
    """Results of earlier trials and data that users imported, in the order of the log."""

    def __init__(self) -> None:
        self._items: list[Payload | list[PastTrial]] = []

    def add_trial(self, trial: PastTrial) -> None:
        """Append the result of a trial."""
        if not self._items or not isinstance(self._items[-1], list):
            self._items.append([])
        trials = self._items[-1]
        assert isinstance(trials, list), "appended above"
        trials.append(trial)

    def add_data(self, data: Payload) -> None:
        """Append data that the user has imported."""
        self._items.append(data)

    def remove_proposers(self) -> None:
        """Remove from all results the names of the tuners that proposed them."""
        for item in self._items:
            if isinstance(item, list):
                item[:] = [replace(trial, proposer="") for trial in item]

    def import_commands(self, position: Position) -> Iterator[commands.Command]:
        """Yield the commands that import all results and data into a host, in order."""
        for item in self._items:
            if isinstance(item, list):
                yield import_of(position, item)
            else:
                yield commands.ImportData(position, item)

    def clear(self) -> None:
        """Drop all results."""
        self._items.clear()


def import_of(position: Position, trials: list[PastTrial]) -> commands.ImportTrials:
    """Return the command that imports results of trials, with tuner names and run times if any.

    Args:
        position: event that the command comes from.
        trials: whose results are imported.
    """
    proposers = tuple(trial.proposer for trial in trials)
    durations_s = tuple(trial.duration_s for trial in trials)
    return commands.ImportTrials(
        position,
        tuple((trial.parameters, trial.value) for trial in trials),
        proposers if any(proposers) else (),
        durations_s if any(durations_s) else (),
    )


def reports_to_assessor(
    earlier: Iterable[commands.Command], position: Position
) -> Iterator[commands.ImportReports]:
    """Yield the reports in commands to an earlier host, for the same assessor in the next host.

    Args:
        earlier: commands of the generation before.
        position: event that the commands come from.
    """
    reports: list[commands.PastReport] = []
    for command in earlier:
        reports += _reports_in(command)
    for start in range(0, len(reports), REPORTS_AT_ONCE):
        yield commands.ImportReports(position, tuple(reports[start : start + REPORTS_AT_ONCE]))


def _reports_in(command: commands.Command) -> Iterable[commands.PastReport]:
    match command:
        case commands.TellMetric(final=False):
            return (
                commands.PastReport(
                    command.trial_id, command.attempt, command.sequence, command.value
                ),
            )
        case commands.TellEnd(trial_id=trial_id, state=state):
            return (commands.PastReport(trial_id, end_state=state),)
        case commands.ImportReports(reports=reports):
            return reports
        case _:
            return ()
