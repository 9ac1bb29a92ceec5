"""Exploration: a fold of its log and of its strategy process's outputs.

It decides which reports to the manager are due, and what the process is sent. A service may die at
any moment: the next one folds the same log, starts another process, and the log answers what that
one submits again.
"""

from collections import deque
from dataclasses import replace

from svc_nas.domain import events, reports, strategy_lines
from svc_nas.domain.reports import Candidate

_RUNNING = "RUNNING"
_SUCCEEDED = "SUCCEEDED"
_CANCELLED = "SYS_CANCELED"
"""State of trials that ended with the experiment."""
_STARTING = frozenset({"", "INITIALIZED", _RUNNING})
"""States in which a strategy that does not run is started."""
_CLOSING = {"NO_MORE_TRIAL": False, "DONE": True}
"""States in which the experiment takes no more candidates, and whether no trial runs any more."""


class Exploration:
    """Mutable state of one exploration, folded from log and strategy outputs; decides reports.

    Attributes:
        generation: number of starts, resumptions included; 0 before the first one.
        wanted: whether the experiment was started and has not ended since.
        setup: how it was created; None before that.
        directory: folder of the experiment.
        concurrency: most concurrent trials; 0 is a pause.
        is_ready: whether the strategy's process has opened the document.
        exhausted: whether the strategy has no more candidates.

    Examples:
        >>> exploration = Exploration()
        >>> exploration.feed(events.AlgorithmRequested(1, "/exp", "nas"))
        >>> exploration.apply(strategy_lines.Ready())
        >>> exploration.next_report()
        Started(generation=1)
    """

    def __init__(self) -> None:
        self.generation = 0
        self.wanted = False
        self.setup: events.ExplorationCreated | None = None
        self.directory = ""
        self.concurrency = 1
        self.is_ready = False
        self.exhausted = False
        self._state = ""
        self._failure = ""
        self._gave_up = False
        self._started = False
        self._announced = False
        self._requests: dict[str, tuple[int, ...]] = {}
        self._deferred: deque[int] = deque()
        self._queue: deque[Candidate] = deque()
        self._stops: deque[str] = deque()
        self._sent: dict[int, Candidate] = {}
        """Candidates that were reported and are not in the log yet, by parameter id."""
        self._answered: set[str] = set()
        """Requests that were answered; the log does not have it yet."""
        self._end_sent = False
        self._ended_in_log = False
        self._is_closed = False
        self._keys: dict[int, str] = {}
        """Keys of recorded candidates without a trial, by parameter id."""
        self._trials: dict[str, str] = {}
        """Keys of candidates by live trial."""
        self._cancelled: set[str] = set()
        """Keys of candidates whose trial ended with the experiment."""
        self._lines: list[strategy_lines.StrategyInput] = []

    # What the session does

    @property
    def wants_strategy(self) -> bool:
        """Whether the strategy's process is to be started."""
        is_over = self.exhausted or self._ended_in_log or bool(self._failure)
        return self.wanted and not is_over and self._state in _STARTING

    @property
    def has_unconfirmed(self) -> bool:
        """Whether the log does not yet have a candidate that was reported.

        Another process would submit it again, so it is not started before.
        """
        return self.wanted and bool(self._sent)

    @property
    def has_result(self) -> bool:
        """Whether lines that were not taken hold a result of a candidate."""
        return any(isinstance(line, strategy_lines.Ended) for line in self._lines)

    def take_lines(self) -> list[strategy_lines.StrategyInput]:
        """Return and clear the lines to send to the strategy's process."""
        lines, self._lines = self._lines, []
        return lines

    def fail(self, reason: str) -> None:
        """Store the first reason why the strategy cannot run, for the report `GaveUp`."""
        self._failure = self._failure or reason

    def drop_process(self) -> None:
        """Mark the process as not ready; unless exhausted, discard its queued outputs.

        A strategy that is exhausted has no other process.
        """
        self.is_ready = False
        if not self.exhausted:
            self._queue.clear()
            self._stops.clear()

    # Events of the log

    def feed(self, event: events.Event) -> None:
        """Apply the next event of the log; queue lines for the process."""
        match event:
            case events.ExplorationCreated():
                self.setup = event
                self.concurrency = event.concurrency
            case events.AlgorithmRequested():
                self._requested(event)
            case events.AlgorithmStarted(generation):
                self._started = generation == self.generation
            case events.TrialsRequested(request_id, parameter_ids):
                self._requests[request_id] = parameter_ids
            case events.CandidatesRecorded():
                self._recorded(event)
            case events.BudgetChanged(concurrency):
                self.concurrency = concurrency
                self._lines.append(strategy_lines.Resized(concurrency))
            case events.StateChanged(state):
                self._changed(state)
            case events.ExperimentMoved(directory, code_directory):
                self._moved(directory, code_directory)
            case events.ExperimentEnded():
                self.wanted = False
            case _:
                self._trial_event(event)

    def _trial_event(
        self,
        event: events.TrialScheduled | events.TrialLost | events.MetricReported | events.TrialEnded,
    ) -> None:
        if isinstance(event, events.TrialScheduled):
            key = self._keys.pop(event.parameter_id, None)
            if key is not None:  # otherwise a trial that a user has added
                self._trials[event.trial_id] = key
                self._lines.append(strategy_lines.Scheduled(key, event.trial_id))
            return
        key = self._trials.get(event.trial_id)
        if key is None:
            return
        match event:
            case events.TrialLost():
                self._lines.append(strategy_lines.Lost(key))
            case events.MetricReported(_, value, is_final):
                self._lines.append(strategy_lines.Measured(key, value, is_final))
            case events.TrialEnded(trial_id, state):
                del self._trials[trial_id]
                self._lines.append(strategy_lines.Ended(key, state == _SUCCEEDED))
                if state == _CANCELLED:
                    self._cancelled.add(key)

    def _requested(self, event: events.AlgorithmRequested) -> None:
        # The manager forgets requests, and candidates without a trial. Those whose trial was
        # stopped with the experiment are submitted again.
        forgotten = {*self._keys.values(), *self._cancelled}
        self._lines = [line for line in self._lines if not _is_obsolete(line, forgotten)]
        self._keys.clear()
        self._cancelled.clear()
        self._requests.clear()
        self._deferred.clear()
        self._sent.clear()
        self._answered.clear()
        self._ended_in_log = self._end_sent = self._is_closed = False
        self._gave_up = self._started = self._announced = False
        self._failure = ""
        self.generation = event.generation
        self.directory = event.directory or self.directory
        self.wanted = True

    def _recorded(self, event: events.CandidatesRecorded) -> None:
        asked = self._requests.pop(event.request_id, ())
        recorded = {one.parameter_id for one in event.candidates}
        missing = [number for number in asked if number not in recorded]
        self._deferred.extend(missing)
        # Another answer than that of this process was recorded, if the latter has more.
        for number in reversed([number for number in missing if number in self._sent]):
            self._queue.appendleft(self._sent.pop(number))
        for one in event.candidates:
            self._record(one)
            if one.parameter_id in self._deferred:
                self._deferred.remove(one.parameter_id)
        if event.exhausted:
            self._deferred.clear()
            self._ended_in_log = True
        self._answered.discard(event.request_id)

    def _record(self, recorded: events.RecordedCandidate) -> None:
        """Bind a recorded id to its candidate; requeue another candidate that was sent for it."""
        sent = self._sent.pop(recorded.parameter_id, None)
        if sent is not None and sent.parameters == recorded.parameters:
            # Of an earlier process, perhaps, which submitted the same model for the same id.
            self._keys[recorded.parameter_id] = sent.key
            return
        if sent is not None:
            self._queue.appendleft(sent)
        self._keys[recorded.parameter_id] = recorded.key
        self._lines.append(strategy_lines.Added(recorded.key, recorded.parameters))

    def _changed(self, state: str) -> None:
        if state in _CLOSING:
            self._is_closed = True
            self._lines.append(strategy_lines.Closed(state, _CLOSING[state]))
        elif state == _RUNNING and self._is_closed:
            self._is_closed = False
            self._lines.append(strategy_lines.Opened())
        self._state = state

    def _moved(self, directory: str, code_directory: str) -> None:
        self.directory = directory or self.directory
        if self.setup is not None and code_directory:
            self.setup = replace(self.setup, code_directory=code_directory)

    # Output of the strategy's process

    def apply(self, output: strategy_lines.StrategyOutput) -> None:
        """Apply an output of the process: ready, candidate, stop request, exhausted or failed."""
        match output:
            case strategy_lines.Ready():
                self.is_ready = True
            case strategy_lines.Submitted(candidate):
                self._queue.append(candidate)
            case strategy_lines.StopWanted(trial_id):
                self._stops.append(trial_id)
            case strategy_lines.Exhausted():
                self.exhausted = True
            case strategy_lines.Failed(reason):
                self.fail(reason)

    # Reports

    def next_report(self) -> reports.Report | None:
        """Return the next report that is due, and count it as sent; None: there is none."""
        if not self.wanted:
            return None
        if self._failure:
            return self._give_up()
        if not self.is_ready and not self._started:
            return None
        if not self._started and not self._announced:
            self._announced = True
            return reports.Started(self.generation)
        if self._stops:
            return reports.TrialStopped(self._stops.popleft())
        return self._answer() or self._deferred_candidates() or self._end()

    def _give_up(self) -> reports.Report | None:
        if self._gave_up:
            return None
        self._gave_up = True
        return reports.GaveUp(self.generation, self._failure)

    def _answer(self) -> reports.Report | None:
        """Return the answer to the next request: queued candidates, or the end; None: not yet."""
        for request_id, ids in self._requests.items():
            if request_id in self._answered:
                continue
            candidates = self._take(ids)
            is_end = self._is_end
            if not candidates and not is_end:
                return None
            self._answered.add(request_id)
            deferred = 0 if is_end else len(ids) - len(candidates)
            return reports.CandidatesGenerated(request_id, candidates, deferred, is_end)
        return None

    @property
    def _is_end(self) -> bool:
        return self.exhausted and not self._queue

    def _deferred_candidates(self) -> reports.Report | None:
        ids = [number for number in self._deferred if number not in self._sent]
        candidates = self._take(ids)
        return reports.CandidatesGenerated("", candidates) if candidates else None

    def _take(self, ids: list[int] | tuple[int, ...]) -> tuple[tuple[int, Candidate], ...]:
        """Dequeue candidates for ids, note them as sent, return the pairs; none during a pause."""
        if self.concurrency < 1:
            return ()
        count = min(len(ids), len(self._queue))
        taken = tuple((number, self._queue.popleft()) for number in ids[:count])
        self._sent.update(taken)
        return taken

    def _end(self) -> reports.Report | None:
        """Return, once, the report that ends deferred ids if all candidates are logged; or None."""
        is_due = self._is_end and bool(self._deferred) and not self._sent
        if not is_due or self._end_sent:
            return None
        self._end_sent = True
        return reports.CandidatesGenerated("", (), exhausted=True)


def _is_obsolete(line: strategy_lines.StrategyInput, forgotten: set[str]) -> bool:
    """Return whether a new generation discards a line: open, close, or of a forgotten candidate."""
    match line:
        case strategy_lines.Closed() | strategy_lines.Opened():
            return True
        case strategy_lines.Resized():
            return False
        case _:
            return line.key in forgotten
