"""Algorithm hosts without a process: the real command loop, with crashes on demand."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nni.hpo.host.checkpoints import CheckpointSchedule
from nni.hpo.host.command_loop import CommandLoop
from svc_dispatcher.adapters.host_lines import line_of, output_of
from svc_dispatcher.domain import commands as c
from svc_dispatcher.domain.answers import Output
from svc_dispatcher.domain.values import ExperimentSetup
from svc_dispatcher.ports import HostSink

Trouble = Callable[[c.Command], str]
"""Returns `die` or `hang` to make a command do so, else an empty text."""


class InProcessHost:
    """`AlgorithmHost` in this process; its outputs reach the sink in a later turn of the loop."""

    def __init__(self, sink: HostSink, world: "InProcessLauncher", *, eager: bool) -> None:
        self.eager = eager
        self._sink: HostSink | None = sink
        self._world = world
        # Due about every twentieth call, since the work is counted by the calls.
        steps = itertools.count(1)
        due = CheckpointSchedule(work_s=lambda: float(next(steps) * 1_000))
        self._loop = CommandLoop(
            self,
            lambda _: None,
            due if world.checkpoints else CheckpointSchedule(work_s=lambda: 0.0),
        )
        self._said: list[Output] = []
        self._stuck = False

    def commands(self) -> Iterable[dict[str, Any]]:
        return ()

    def write(self, message: dict[str, Any]) -> None:
        self._said.append(output_of(json.dumps(message).encode()))

    def send(self, commands: Sequence[c.Command]) -> None:
        for command in commands:
            if self._stuck:
                return
            trouble = self._world.trouble(command)
            self._stuck = bool(trouble)
            if trouble == "die":
                asyncio.get_running_loop().call_soon(self._end, "died on demand")
            if not trouble:
                self._handle(json.loads(line_of(command, eager=self.eager)))

    def _handle(self, command: dict[str, Any]) -> None:
        alive = self._loop.handle(command)
        if alive:
            self.write({"done": command["position"]})
            self._loop.prepare()
        outputs, self._said = self._said, []
        loop = asyncio.get_running_loop()
        loop.call_soon(self._tell, outputs)
        if not alive:
            self._stuck = True
            loop.call_soon(self._end, "ended itself")

    def _tell(self, outputs: list[Output]) -> None:
        if self._sink is not None:
            self._sink.on_outputs(outputs)

    def _end(self, reason: str) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.on_end(reason)

    async def aclose(self) -> None:
        if self._sink is not None:
            self._world.closed += 1
        self._sink = None
        self._stuck = True


class InProcessLauncher:
    """`HostLauncher` of `InProcessHost`s.

    Attributes:
        trouble: called before every command of every host.
        checkpoints: whether hosts take checkpoints, often.
        launched: number of hosts launched.
        closed: number of hosts that were closed before they ended.
        failure: raised by the next launch.
    """

    def __init__(self) -> None:
        self.trouble: Trouble = lambda _: ""
        self.checkpoints = False
        self.launched = 0
        self.closed = 0
        self.failure: Exception | None = None

    async def launch(self, setup: ExperimentSetup, sink: HostSink, *, eager: bool) -> InProcessHost:
        del setup
        self.launched += 1
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        return InProcessHost(sink, self, eager=eager)
