"""Fold of an experiment's log into commands for the algorithm's host and new reports.

The log is fed from its beginning. During this replay commands are collected; `go_live` marks the
end of the log, after which a host can take the collected commands and all later ones. Outputs
of a fresh host are compared with the log, so a host or a dispatcher may die at any moment:
nothing is drawn twice and nothing is reported twice.
"""

from dataclasses import dataclass, replace

from svc_dispatcher.domain import answers, commands, events
from svc_dispatcher.domain.past_curves import PastCurves
from svc_dispatcher.domain.past_results import (
    PastResults,
    PastTrial,
    import_of,
    reports_to_assessor,
)
from svc_dispatcher.domain.tuner_labels import FIRST_TUNER
from svc_dispatcher.domain.values import (
    AlgorithmChoice,
    ExperimentSetup,
    Payload,
    Position,
    Suggestion,
    generation_seed,
)


@dataclass(slots=True)
class _Trial:
    """Live trial as the algorithm's state tracks it: parameters, final result, stopping."""

    parameter_id: int
    customized: bool
    parameters: Payload = None
    """Kept during replay only, for a later generation, unless the trial is of an earlier tuner."""
    final: tuple[Payload] | None = None
    """Kept likewise: the final result, once there is one."""
    proposer: str = ""
    """Kept likewise: label of the tuner, of several, that proposed the parameters."""
    stopping: bool = False
    """A stop was requested or advised."""
    started_at_ms: int = 0
    """Start of the latest attempt; 0: unknown."""
    earlier: bool = False
    """An earlier tuner proposed it: the present one imports the result when the trial ends."""


class AlgorithmState:
    """State of an experiment's algorithm, folded from the log, that yields host commands.

    Attributes:
        setup: None until the first event of the log.
        generation: number of the generation wanted now; 0 before the first request.
        wants_host: whether the algorithm is wanted: requested, and the experiment has not ended.
    """

    def __init__(self) -> None:
        self.setup: ExperimentSetup | None = None
        self.generation = 0
        self.wants_host = False
        self._live = False
        self._last = Position(0, 0)
        self._commands: list[commands.Command] = []
        self._search_space: Payload = None
        self._started = False
        self._unanswered: set[str] = set()
        self._promised = 0
        self._trials: dict[str, _Trial] = {}
        self._past = PastResults()
        self._proposers: dict[int, str] = {}
        """Of parameters without a trial so far, by their id; during replay only."""
        self._labels = FIRST_TUNER
        self._past_curves = PastCurves()
        self._recorded: dict[str, tuple[tuple[int, Payload], ...]] = {}
        self._recorded_late: dict[int, Payload] = {}
        self._sent: dict[str, tuple[Suggestion, ...]] = {}
        self._sent_late: dict[int, Payload] = {}
        self._known_failures: set[tuple[Position, str]] = set()
        self._known_divergences: set[int] = set()
        self._known_exhaustions: set[Position] = set()

    def feed(self, position: Position, event: events.Event) -> None:
        """Apply the next event of the log; collect the commands to the host that follow."""
        self._last = position
        match event:
            case events.TrialsRequested():
                self._trials_requested(position, event)
            case events.ParametersGenerated():
                self._parameters(position, event)
            case events.TrialScheduled():
                self._scheduled(event)
            case events.TrialStarted():
                self._attempt_started(event)
            case events.MetricReported():
                self._metric(position, event)
            case events.TrialStopRequested():
                self._stop_requested(event)
            case events.TrialEnded():
                self._ended(position, event)
            case _:
                self._feed_algorithm(position, event)

    def _feed_algorithm(
        self, position: Position, event: events.AlgorithmEvent | events.ExperimentEvent
    ) -> None:
        match event:
            case events.AlgorithmRequested():
                self._requested(position, event)
            case events.AlgorithmStarted():
                self._started = self._started or event.generation == self.generation
            case events.AlgorithmFailed():
                self._known_failures.add((event.position, event.call))
            case events.AlgorithmDiverged():
                self._known_divergences.add(event.parameter_id)
            case _:
                self._feed_experiment(position, event)

    def _feed_experiment(self, position: Position, event: events.ExperimentEvent) -> None:
        match event:
            case events.ExperimentCreated():
                self.setup = event.setup
                self._search_space = event.setup.search_space
            case events.SearchSpaceChanged():
                self._search_space = event.search_space
                self._commands.append(commands.UpdateSearchSpace(position, event.search_space))
            case events.DataImported():
                self._imported(position, event)
            case events.CustomTrialAdded():
                self._commands.append(
                    commands.AddCustomized(position, event.parameter_id, event.parameters)
                )
            case events.ExperimentEnded():
                self.wants_host = False
            case events.ExperimentMoved():
                assert self.setup is not None, "a log begins with the creation of its experiment"
                self.setup = self.setup.moved(event.directory, event.trial_code_directory)

    def go_live(self) -> None:
        """End the replay of the log: mark answered requests as replayed; free past results."""
        if self._live:
            return
        self._live = True
        collected, self._commands = self._commands, []
        for command in collected:
            self._add_command(command)
        self._past.clear()
        self._proposers.clear()
        self._past_curves.clear()
        for trial in self._trials.values():
            if not trial.earlier:
                trial.parameters = trial.final = None

    def _add_command(self, command: commands.Command) -> None:
        if isinstance(command, commands.Initialize):
            self._commands.append(replace(command, log_end=self._last))
        elif isinstance(command, commands.Generate) and command.request_id in self._recorded:
            recorded = self._recorded.pop(command.request_id)
            self._commands += [
                commands.Generate(
                    command.position, command.request_id, command.parameter_ids, replayed=True
                ),
                commands.Recorded(command.position, recorded),
            ]
        else:
            self._commands.append(command)

    def recorded_commands(self) -> list[commands.Command]:
        """Return the generation's commands, each answered request followed by its logged answer.

        Requests are not marked as replayed, so a fresh host draws and reports its own answer; the
        parameters in the log follow each one as `Recorded`.
        """
        found: list[commands.Command] = []
        for command in self._commands:
            found.append(command)
            if isinstance(command, commands.Generate) and command.request_id in self._recorded:
                found.append(
                    commands.Recorded(command.position, self._recorded[command.request_id])
                )
        return found

    @property
    def idle(self) -> bool:
        """True if the algorithm has started, no trial is live and no answer is outstanding."""
        outstanding = bool(self._unanswered) or self._promised > 0
        return self._started and not self._trials and not outstanding

    def take_commands(self) -> list[commands.Command]:
        """Remove and return commands for the host; none in replay or while no host is wanted."""
        if not self._live or not self.wants_host:
            return []
        taken, self._commands = self._commands, []
        return taken

    # --- the log

    def _requested(self, position: Position, event: events.AlgorithmRequested) -> None:
        assert self.setup is not None, "a log begins with the creation of its experiment"
        if event.service:
            return  # another service answers in place of an algorithm
        reports: list[commands.ImportReports] = []
        if event.tuner is not None:
            reports = self._hand_over(position, event.tuner)
        else:
            for trial in self._trials.values():
                self._keep_result(trial)
            self._trials.clear()
        self._commands.clear()
        self._recorded.clear()
        self._recorded_late.clear()
        self._unanswered.clear()
        self._promised = 0
        if event.directory:
            self.setup = replace(self.setup, directory=event.directory)
        self.generation = event.generation
        self.wants_host = True
        self._started = False
        self._commands.append(
            commands.Initialize(
                position,
                self.setup,
                self._search_space,
                generation_seed(self.setup.seed, event.generation),
                running=tuple(t.parameters for t in self._trials.values() if not t.customized),
            )
        )
        self._commands += self._past.import_commands(position)
        curves = self._past_curves.found()
        if any(curve.final is None for curve in curves):
            self._commands.append(commands.ImportCurves(position, curves))
        self._commands += reports

    def _hand_over(
        self, position: Position, tuner: AlgorithmChoice
    ) -> list[commands.ImportReports]:
        """Replace the tuner, also with live trials; return past reports for the next host."""
        assert self.setup is not None, "a log begins with the creation of its experiment"
        self.setup = replace(self.setup, tuner=tuner)
        self._labels = self._labels.handed_over()
        for trial in self._trials.values():
            trial.earlier, trial.proposer = True, ""
        self._past.remove_proposers()
        self._proposers.clear()
        if not self.setup.stops_early:
            return []
        return list(reports_to_assessor(self._commands, position))

    def _trials_requested(self, position: Position, event: events.TrialsRequested) -> None:
        self._unanswered.add(event.request_id)
        self._commands.append(commands.Generate(position, event.request_id, event.parameter_ids))

    def _parameters(self, position: Position, event: events.ParametersGenerated) -> None:
        self._unanswered.discard(event.request_id)
        self._promised += event.deferred
        self._labels = self._labels.noted(event.labels)
        if not self._live:
            self._proposers.update(event.proposers)
        if not event.request_id:
            self._late_parameters(position, event)
        elif not self._live or event.request_id not in self._sent:
            # Replaying; or the answer of an earlier dispatcher, and the host's is still to come.
            self._recorded[event.request_id] = event.parameters
        else:
            self._settle(position, self._sent.pop(event.request_id), event.parameters)

    def _late_parameters(self, position: Position, event: events.ParametersGenerated) -> None:
        self._promised = 0 if event.exhausted else self._promised - len(event.parameters)
        if event.exhausted and event.based_on is not None:
            self._known_exhaustions.add(event.based_on)
        for parameter_id, parameters in event.parameters:
            if parameter_id in self._sent_late:
                if self._sent_late.pop(parameter_id) == parameters:
                    continue
            else:
                self._recorded_late[parameter_id] = parameters
            self._commands.append(commands.Recorded(position, ((parameter_id, parameters),)))

    def _settle(
        self,
        position: Position,
        sent: tuple[Suggestion, ...],
        recorded: tuple[tuple[int, Payload], ...],
    ) -> None:
        ours = {suggestion.parameter_id: suggestion.parameters for suggestion in sent}
        differing = tuple(
            (parameter_id, parameters)
            for parameter_id, parameters in recorded
            if parameter_id not in ours or ours[parameter_id] != parameters
        )
        if differing:
            self._commands.append(commands.Recorded(position, differing))

    def _scheduled(self, event: events.TrialScheduled) -> None:
        trial = _Trial(event.parameter_id, event.customized)
        if not self._live:
            trial.parameters = event.parameters
            trial.proposer = self._proposers.pop(event.parameter_id, "")
        self._trials[event.trial_id] = trial

    def _metric(self, position: Position, event: events.MetricReported) -> None:
        assert self.setup is not None, "a log begins with the creation of its experiment"
        trial = self._trials.get(event.trial_id)
        if trial is None:
            return  # of an earlier generation
        if event.final and (trial.earlier or not self._live):
            trial.final = (event.value,)
        if not (event.final or self._live or trial.customized) and self.setup.stops_early:
            self._past_curves.report(event.trial_id, event.attempt, event.value)
        wanted = self.setup.stops_early if trial.earlier else self.setup.wants_intermediate
        if (event.final and not trial.earlier) or (wanted and not event.final):
            self._commands.append(
                commands.TellMetric(
                    position,
                    event.trial_id,
                    event.attempt,
                    trial.parameter_id,
                    event.final,
                    event.sequence,
                    event.value,
                    trial.customized or trial.earlier,
                )
            )

    def _attempt_started(self, event: events.TrialStarted) -> None:
        if event.trial_id in self._trials:
            self._trials[event.trial_id].started_at_ms = event.started_at_ms

    def _stop_requested(self, event: events.TrialStopRequested) -> None:
        if event.trial_id in self._trials:
            self._trials[event.trial_id].stopping = True

    def _ended(self, position: Position, event: events.TrialEnded) -> None:
        trial = self._trials.pop(event.trial_id, None)
        if trial is None:
            return
        duration_s = _duration_s(trial, event.ended_at_ms)
        if not self._live:
            self._keep_result(trial, duration_s)
            self._past_curves.end(event.trial_id, trial.parameters, event.state, trial.final)
        if trial.earlier and trial.final is not None and not trial.customized:
            # Before the end: a checkpoint, which is taken after an end, holds the whole event.
            sample = PastTrial(trial.parameters, trial.final[0], duration_s=duration_s)
            self._commands.append(import_of(position, [sample]))
        customized = trial.customized or trial.earlier
        self._commands.append(
            commands.TellEnd(
                position,
                event.trial_id,
                trial.parameter_id,
                event.state,
                customized,
                duration_s,
            )
        )

    def _keep_result(self, trial: _Trial, duration_s: float | None = None) -> None:
        """Store a trial's result for later generations, unless customized or without a result."""
        if not trial.customized and trial.final is not None:
            self._past.add_trial(
                PastTrial(trial.parameters, trial.final[0], trial.proposer, duration_s)
            )

    def _imported(self, position: Position, event: events.DataImported) -> None:
        if not self._live:
            self._past.add_data(event.data)
        self._commands.append(commands.ImportData(position, event.data))

    # --- the host

    def new_reports(self, output: answers.Output) -> list[answers.Report]:
        """Return an output's reports that the log lacks; note them as sent, queue corrections."""
        if isinstance(output, answers.Generated):
            return self._late(output) if not output.request_id else self._generated(output)
        if isinstance(output, answers.StopAdvised):
            trial = self._trials.get(output.trial_id)
            if trial is None or trial.stopping:
                return []
            trial.stopping = True
            return [output]
        if isinstance(output, answers.Ready):
            return [] if self._started else [answers.Started(self.generation, output)]
        if isinstance(output, answers.CallFailed):
            known = output.skipped and (output.position, output.call) in self._known_failures
            return [] if known else [output]
        if isinstance(output, answers.Diverged):
            if output.parameter_id in self._known_divergences:
                return []
            self._known_divergences.add(output.parameter_id)
            return [output]
        return []

    def _generated(self, output: answers.Generated) -> list[answers.Report]:
        recorded = self._recorded.pop(output.request_id, None)
        if recorded is not None:
            self._settle(output.position, output.suggestions, recorded)
            return []
        self._sent[output.request_id] = output.suggestions
        return [replace(output, labels=self._labels)]

    def _late(self, output: answers.Generated) -> list[answers.Report]:
        news: list[Suggestion] = []
        for suggestion in output.suggestions:
            parameter_id, parameters = suggestion.parameter_id, suggestion.parameters
            if parameter_id not in self._recorded_late:
                self._sent_late[parameter_id] = parameters
                news.append(suggestion)
            elif self._recorded_late[parameter_id] != parameters:
                pair = (parameter_id, self._recorded_late[parameter_id])
                self._commands.append(commands.Recorded(output.position, (pair,)))
        exhausted = output.exhausted and output.position not in self._known_exhaustions
        if not news and not exhausted:
            return []
        return [answers.Generated(output.position, "", tuple(news), exhausted, labels=self._labels)]


def _duration_s(trial: _Trial, ended_at_ms: int) -> float | None:
    """Return the run time of a trial's last attempt; None if a time is missing or too early."""
    known = 0 < trial.started_at_ms < ended_at_ms
    return (ended_at_ms - trial.started_at_ms) / 1000 if known else None
