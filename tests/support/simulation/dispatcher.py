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

_PATIENCE_S: Final = 0.02
_LAUNCH_S: Final = 0.3
_IDLE_LIMIT_S: Final = 60.0
_LAST_PAUSE_S: Final = 10.0
_HANDLING_S: Final = 0.003
"""How long a host works on one command, about."""


class LocalHost:
    """The real command loop, called by hand; implements its `Pipe`."""

    def __init__(self) -> None:
        self.eager = False
        self._loop = CommandLoop(
            self, configure_log=lambda _: None, due=CheckpointSchedule(work_s=lambda: 0.0)
        )
        self._said: list[answers.Output] = []

    def commands(self) -> Iterable[dict[str, Any]]:
        """See `Pipe`; commands come through `handle`."""
        return ()

    def write(self, message: dict[str, Any]) -> None:
        """See `Pipe`."""
        self._said.append(output_of(json.dumps(message).encode()))

    def handle(self, command: Command, *, eager: bool = False) -> tuple[list[answers.Output], bool]:
        """Handle one command; give what was said, and whether the host goes on."""
        data = json.loads(line_of(command, eager=eager))
        if isinstance(command, Initialize):
            data["checkpoint"] = ""
        alive = self._loop.handle(data)
        if alive:
            self._said.append(answers.Done(Position(*data["position"])))
        said, self._said = self._said, []
        return said, alive


class SimulatedDispatcher(Node):
    """Serves the experiment: life after life of its algorithm."""

    def __init__(self, time: VirtualTime, bus: SimulatedBus) -> None:
        super().__init__(time, "dispatcher")
        self.bus = bus
        self._forget_all()
        bus.on_log(self._log_grew)

    def _forget_all(self) -> None:
        self._ledger = FailureLedger()
        self._given_up = 0
        self._deaths = 0
        self._life = 0
        self._unsent: deque[tuple[bytes, str]] = deque()
        self._begin_life()

    def _begin_life(self) -> None:
        self._life += 1
        self._session = AlgorithmState()
        self._host: LocalHost | None = None
        self._eager = False
        self._free_at_s = 0.0
        self._waiting: deque[Position] = deque()
        self._pile: list[Command] = []
        self._patient = False
        self._read_through = 0
        self._following = False
        self._asleep = False
        self._idle_since_s: float | None = None

    # --- life

    def started(self) -> None:
        """Read the log from its beginning."""
        self._forget_all()
        self.bus.request(self, lambda: list(self.bus.log), self._read)

    def killed(self) -> None:
        """Lose everything, the host included."""
        self._forget_all()

    def _again(self, pause_s: float = 0.0) -> None:
        self._begin_life()
        life = self._life
        self.later(pause_s, self._again_now, life)

    def _again_now(self, life: int) -> None:
        if life == self._life:
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
            self.later(_LAUNCH_S, self._launched, self._life, self._deaths > 0)
        self._catch_up()

    def _launched(self, life: int, eager: bool) -> None:
        if life != self._life:
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
            self._again()
            return
        generation = self._session.generation
        place = len(log)
        while place and log[place - 1].sequence > self._read_through:
            place -= 1
        for batch in log[place:]:
            self._feed(batch)
        if self._session.generation != generation:
            self._again()
        elif not self._session.wants_host:
            self._host = None
            self._again()
        else:
            self._send()
            self._note_idle()

    def _note_idle(self) -> None:
        if not self._session.idle:
            self._idle_since_s = None
        elif self._idle_since_s is None:
            self._idle_since_s = self.time.now_s
            self.later(_IDLE_LIMIT_S, self._watch_idle, self._life)

    def _watch_idle(self, life: int) -> None:
        since_s = self._idle_since_s
        if life != self._life or since_s is None or self._waiting:
            return
        if self.time.now_s - since_s >= _IDLE_LIMIT_S:
            self._again()

    # --- the host

    def _send(self) -> None:
        self._pile += self._session.take_commands()
        if any(command.urgent for command in self._pile):
            self._send_pile(self._life)
        elif self._pile and not self._patient:
            self._patient = True
            self.later(_PATIENCE_S, self._send_pile, self._life)

    def _send_pile(self, life: int) -> None:
        if life != self._life:
            return
        self._patient = False
        if self._host is None or self._session.generation <= self._given_up:
            return
        commands, self._pile = self._pile, []
        if commands:
            self._waiting.extend(command.position for command in commands)
            self.later(self._worked_s(1), self._handle, self._life, self._host, commands)

    def _handle(self, life: int, host: LocalHost, commands: list[Command]) -> None:
        if life != self._life or host is not self._host:
            return
        outputs: list[answers.Output] = []
        alive = True
        for command in commands:
            said, alive = host.handle(command, eager=self._eager)
            outputs += said
            if not alive:
                break
        delay_s = self._worked_s(len(commands))
        self.later(delay_s, self._said, self._life, outputs)
        if not alive:
            self.later(delay_s, self._host_ended, self._life)

    def _worked_s(self, count: int) -> float:
        """Draw when the host is done with so many commands more: one at a time, in order."""
        work_s = _HANDLING_S * count * (0.5 + self.bus.random.random())
        self._free_at_s = max(self._free_at_s, self.time.now_s) + work_s
        return self._free_at_s - self.time.now_s

    def _said(self, life: int, outputs: list[answers.Output]) -> None:
        if life != self._life:
            return
        for output in outputs:
            if isinstance(output, answers.Done):
                while self._waiting and self._waiting[0] <= output.position:
                    self._waiting.popleft()
                self._ledger.handled(output.position)
                if not self._waiting:
                    self._deaths = 0
            elif isinstance(output, answers.Unbuildable):
                self._give_up(output.reason)
            else:
                for report in self._session.new_reports(output):
                    self._tell(report)
        self._send()

    def kill_host(self) -> None:
        """SIGKILL of the child."""
        if self.alive and self._host is not None:
            self._host_ended(self._life)

    def _host_ended(self, life: int) -> None:
        if life != self._life:
            return
        self._deaths += 1
        count = self._ledger.record_failure(self._waiting[0] if self._waiting else None)
        if FailureLedger.is_exhausted(count):
            self._give_up("it died again and again on the same event")
            return
        pause_s = 0.2 * 2 ** (self._deaths - 2) if self._deaths > 1 else 0.0
        self._again(min(pause_s, _LAST_PAUSE_S))

    def _give_up(self, reason: str) -> None:
        self._given_up = self._session.generation
        self._tell(answers.GaveUp(self._session.generation, reason))
        self._waiting.clear()
        self._host = None

    def _tell(self, report: answers.Report) -> None:
        payload = log_messages.report_to_proto(report).SerializeToString()
        key = log_messages.message_id(self.bus.experiment_id, self._session.generation, report)
        self._unsent.append((payload, key))
        if len(self._unsent) == 1:
            self._publish()

    def _publish(self) -> None:
        payload, key = self._unsent[0]
        self.bus.request(
            self, lambda: self.bus.publish("dispatcher", payload, key), self._published
        )

    def _published(self, _: int) -> None:
        self._unsent.popleft()
        if self._unsent:
            self._publish()
