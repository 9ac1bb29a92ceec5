"""Dispatcher with one algorithm host, driven as `svc_dispatcher.sessions` does."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from nni.hpo.host.checkpoints import CheckpointSchedule
from nni.hpo.host.command_loop import CommandLoop
from nni_proto.experiment.v1 import event_pb2
from svc_dispatcher.adapters.host_lines import line_of, output_of
from svc_dispatcher.converters import log_messages
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.algorithm_state import AlgorithmState
from svc_dispatcher.domain.commands import Command, Initialize
from svc_dispatcher.domain.failures import FailureLedger
from svc_dispatcher.domain.values import Position
from tests.support.simulation.bus import Batch, SimulatedBus
from tests.support.simulation.virtual_time import Node, VirtualTime

_FLUSH_AFTER_S: Final = 0.02
_LAUNCH_S: Final = 0.3
_IDLE_LIMIT_S: Final = 60.0
_MAX_PAUSE_S: Final = 10.0
_HANDLING_S: Final = 0.003
"""Mean time that a host spends on one command."""


class LocalHost:
    """In-process algorithm host: the real command loop over a `Pipe` without a process."""

    def __init__(self) -> None:
        self.eager = False
        self._loop = CommandLoop(
            self, configure_log=lambda _: None, due=CheckpointSchedule(work_s=lambda: 0.0)
        )
        self._outputs: list[answers.Output] = []

    def commands(self) -> Iterable[dict[str, Any]]:
        """See `Pipe`; commands come through `handle`."""
        return ()

    def write(self, message: dict[str, Any]) -> None:
        """Write one message."""
        self._outputs.append(output_of(json.dumps(message).encode()))

    def handle(self, command: Command, *, eager: bool = False) -> tuple[list[answers.Output], bool]:
        """Handle one command; return its outputs and whether the host goes on."""
        data = json.loads(line_of(command, eager=eager))
        if isinstance(command, Initialize):
            data["checkpoint"] = ""
        alive = self._loop.handle(data)
        if alive:
            self._outputs.append(answers.Done(Position(*data["position"])))
        outputs, self._outputs = self._outputs, []
        return outputs, alive


class SimulatedDispatcher(Node):
    """Dispatcher of one experiment; each run starts with a fresh algorithm state."""

    def __init__(self, time: VirtualTime, bus: SimulatedBus) -> None:
        super().__init__(time, "dispatcher")
        self.bus = bus
        self._clear()
        bus.on_log(self._log_grew)

    def _clear(self) -> None:
        self._ledger = FailureLedger()
        self._given_up = 0
        self._failures = 0
        self._run = 0
        self._unsent_reports: deque[tuple[bytes, str]] = deque()
        self._reset_run()

    def _reset_run(self) -> None:
        self._run += 1
        self._session = AlgorithmState()
        self._host: LocalHost | None = None
        self._eager = False
        self._free_at_s = 0.0
        self._waiting: deque[Position] = deque()
        self._unsent_commands: list[Command] = []
        self._flush_due = False
        self._read_through = 0
        self._following = False
        self._asleep = False
        self._idle_since_s: float | None = None

    # --- start and stop

    def started(self) -> None:
        """Read the log from its beginning."""
        self._clear()
        self.bus.request(self, lambda: list(self.bus.log), self._read)

    def killed(self) -> None:
        """Clear all state, the host included."""
        self._clear()

    def _restart(self, pause_s: float = 0.0) -> None:
        self._reset_run()
        run = self._run
        self.later(pause_s, self._read_again, run)

    def _read_again(self, run: int) -> None:
        if run == self._run:
            self.bus.request(self, lambda: list(self.bus.log), self._read)

    def _read(self, log: list[Batch]) -> None:
        if self._following:
            return
        for batch in log:
            self._feed(batch)
        self._following = True
        self._session.go_live()
        if not self._session.wants_host or self._session.idle:
            self._asleep = True  # until the log grows
            self._catch_up()
            return
        if self._session.generation > self._given_up:
            self.later(_LAUNCH_S, self._launched, self._run, self._failures > 0)
        self._catch_up()

    def _launched(self, run: int, eager: bool) -> None:
        if run != self._run:
            return
        self._host = LocalHost()
        self._eager = eager
        self._send()

    def _feed(self, batch: Batch) -> None:
        message = event_pb2.EventBatch.FromString(batch.payload)
        for position, event in log_messages.events_of(batch.sequence, message):
            self._session.feed(position, event)
        self._read_through = batch.sequence

    # --- the log

    def _log_grew(self) -> None:
        if self.alive:
            self.later(self.bus.incoming_s(self), self._catch_up)

    def _catch_up(self) -> None:
        if not self._following:
            return
        if not self.bus.reaches(self):
            self.later(1.0, self._catch_up)
            return
        log = self.bus.log
        if not log or log[-1].sequence <= self._read_through:
            return
        if self._asleep:
            self._restart()
            return
        generation = self._session.generation
        place = len(log)
        while place and log[place - 1].sequence > self._read_through:
            place -= 1
        for batch in log[place:]:
            self._feed(batch)
        if self._session.generation != generation:
            self._restart()
        elif not self._session.wants_host:
            self._host = None
            self._restart()
        else:
            self._send()
            self._track_idle()

    def _track_idle(self) -> None:
        if not self._session.idle:
            self._idle_since_s = None
        elif self._idle_since_s is None:
            self._idle_since_s = self.time.now_s
            self.later(_IDLE_LIMIT_S, self._check_idle, self._run)

    def _check_idle(self, run: int) -> None:
        since_s = self._idle_since_s
        if run != self._run or since_s is None or self._waiting:
            return
        if self.time.now_s - since_s >= _IDLE_LIMIT_S:
            self._restart()

    # --- the host

    def _send(self) -> None:
        self._unsent_commands += self._session.take_commands()
        if any(command.urgent for command in self._unsent_commands):
            self._flush(self._run)
        elif self._unsent_commands and not self._flush_due:
            self._flush_due = True
            self.later(_FLUSH_AFTER_S, self._flush, self._run)

    def _flush(self, run: int) -> None:
        if run != self._run:
            return
        self._flush_due = False
        if self._host is None or self._session.generation <= self._given_up:
            return
        commands, self._unsent_commands = self._unsent_commands, []
        if commands:
            self._waiting.extend(command.position for command in commands)
            self.later(self._done_after_s(1), self._handle, self._run, self._host, commands)

    def _handle(self, run: int, host: LocalHost, commands: list[Command]) -> None:
        if run != self._run or host is not self._host:
            return
        outputs: list[answers.Output] = []
        alive = True
        for command in commands:
            more, alive = host.handle(command, eager=self._eager)
            outputs += more
            if not alive:
                break
        delay_s = self._done_after_s(len(commands))
        self.later(delay_s, self._apply_outputs, self._run, outputs)
        if not alive:
            self.later(delay_s, self._host_ended, self._run)

    def _done_after_s(self, count: int) -> float:
        """Draw the delay until the host has handled ``count`` more commands, one at a time."""
        work_s = _HANDLING_S * count * (0.5 + self.bus.random.random())
        self._free_at_s = max(self._free_at_s, self.time.now_s) + work_s
        return self._free_at_s - self.time.now_s

    def _apply_outputs(self, run: int, outputs: list[answers.Output]) -> None:
        if run != self._run:
            return
        for output in outputs:
            if isinstance(output, answers.Done):
                while self._waiting and self._waiting[0] <= output.position:
                    self._waiting.popleft()
                self._ledger.handled(output.position)
                if not self._waiting:
                    self._failures = 0
            elif isinstance(output, answers.Unbuildable):
                self._give_up(output.reason)
            else:
                for report in self._session.new_reports(output):
                    self._report(report)
        self._send()

    def kill_host(self) -> None:
        """Kill the host as SIGKILL does."""
        if self.alive and self._host is not None:
            self._host_ended(self._run)

    def _host_ended(self, run: int) -> None:
        if run != self._run:
            return
        self._failures += 1
        count = self._ledger.record_failure(self._waiting[0] if self._waiting else None)
        if FailureLedger.is_exhausted(count):
            self._give_up("the host failed repeatedly on the same event")
            return
        pause_s = 0.2 * 2 ** (self._failures - 2) if self._failures > 1 else 0.0
        self._restart(min(pause_s, _MAX_PAUSE_S))

    def _give_up(self, reason: str) -> None:
        self._given_up = self._session.generation
        self._report(answers.GaveUp(self._session.generation, reason))
        self._waiting.clear()
        self._host = None

    def _report(self, report: answers.Report) -> None:
        payload = log_messages.report_to_proto(report).SerializeToString()
        key = log_messages.message_id(self.bus.experiment_id, self._session.generation, report)
        self._unsent_reports.append((payload, key))
        if len(self._unsent_reports) == 1:
            self._publish()

    def _publish(self) -> None:
        payload, key = self._unsent_reports[0]
        self.bus.request(
            self, lambda: self.bus.publish("dispatcher", payload, key), self._published
        )

    def _published(self, _: int) -> None:
        self._unsent_reports.popleft()
        if self._unsent_reports:
            self._publish()
