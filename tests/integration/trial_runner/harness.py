"""Agent process on a real bus, and a scripted manager."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from nni_proto.experiment.v1 import inbox_pb2
from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import report_pb2
from nni_wire.values import from_value, write_value
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.subjects import control_subject
from tests.support.wait import until

TOKEN = "harness-token"
WAIT_S = 60.0


async def until_true(look: Callable[[], Any], what: str = "") -> Any:
    """Wait for a condition outside of this process; return its true result."""
    return await asyncio.to_thread(until, look, WAIT_S, what)


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone before or after it was opened
        return False
    return state != "Z"


async def until_dead(pid: int) -> None:
    await until_true(lambda: not is_alive(pid), f"the end of {pid}")


async def until_written(path: Path) -> str:
    """Wait until a file has content; return it."""
    text = await until_true(lambda: path.exists() and path.read_text().strip(), f"text in {path}")
    return str(text)


class AgentProcess:
    """Process `python -m svc_trial_runner` with a home folder of its own."""

    def __init__(self, home: Path, nats_url: str, **environment: str) -> None:
        self.home = home
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "NNI_HOME": str(home / "nni"),
            "NNI_NATS_URL": nats_url,
            "NNI_TOKEN": TOKEN,
            "NNI_VERSION": "4.0.0.dev0",
            "NNI_RUNNER_FAKE_GPUS": "0",
            **environment,
        }
        self.process: asyncio.subprocess.Process | None = None
        self.facts: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def log(self) -> str:
        return (self.home / "agent.log").read_text()

    async def start(self, *arguments: str) -> None:
        """Start the agent and wait until it is ready."""
        self.home.mkdir(parents=True, exist_ok=True)
        reader, writer = os.pipe()
        with (self.home / "agent.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "svc_trial_runner",
                *arguments,
                env={**self._environment, "NNI_READY_FD": str(writer)},
                pass_fds=(writer,),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            line = await asyncio.wait_for(asyncio.to_thread(pipe.readline), WAIT_S)
        assert line, f"the agent did not start: {self.log}"
        self.facts = json.loads(line)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), WAIT_S)


class ManagerSide:
    """Scripted manager that publishes tasks and collects reports of one experiment."""

    def __init__(self, bus: NatsBus, folder: Path, experiment_id: str = "exp1") -> None:
        self.bus = bus
        self.folder = folder
        self.experiment_id = experiment_id
        self.reports: dict[str, list[report_pb2.TrialReport]] = defaultdict(list)
        self.changed = asyncio.Condition()
        self._seen: set[tuple[str, int, str, int]] = set()
        self.on_report: Callable[[report_pb2.TrialReport], None] = lambda _report: None

    def spec(self, command: str, **fields: Any) -> task_pb2.TrialSpec:
        code = fields.pop("code_directory", None)
        if "code_archive" not in fields:
            fields["code_directory"] = str(code or self.folder)
        spec = task_pb2.TrialSpec(
            command=command,
            experiment_directory=str(self.folder / "experiments" / self.experiment_id),
            platform="local",
        )
        options = fields.pop("platform_options", None)
        if options is not None:
            write_value(spec.platform_options, options)
        for name in ("time_limit", "grace"):
            seconds = fields.pop(f"{name}_s", None)
            if seconds is not None:
                getattr(spec, name).FromMicroseconds(int(seconds * 1e6))
        spec.environment.update(fields.pop("environment", {}))
        archive = fields.pop("code_archive", None)
        if archive is not None:
            spec.code_archive.CopyFrom(archive)
        for name, value in fields.items():
            setattr(spec, name, value)
        return spec

    async def publish(
        self,
        trial_id: str,
        spec: task_pb2.TrialSpec,
        parameters: Any = None,
        attempt: int = 1,
        sequence_id: int = 0,
    ) -> int:
        task = task_pb2.TrialTask(
            experiment_id=self.experiment_id,
            trial_id=trial_id,
            attempt=attempt,
            sequence_id=sequence_id,
            parameter_id=sequence_id,
            parameter_source="algorithm",
            spec=spec,
        )
        write_value(task.parameters, {} if parameters is None else parameters)
        return await self.bus.tasks.publish(
            "local",
            task.SerializeToString(),
            message_id=f"{self.experiment_id}-{trial_id}-{attempt}",
        )

    async def listen(self) -> None:
        async for batch in self.bus.inbox.follow(self.experiment_id):
            for stored in batch:
                message = inbox_pb2.InboxMessage.FromString(stored.payload)
                for report in message.runner_reports.reports:
                    self._take(report)
            async with self.changed:
                self.changed.notify_all()

    def _take(self, report: report_pb2.TrialReport) -> None:
        name = (report.trial_id, report.attempt, report.claim_id, report.sequence)
        if name not in self._seen:
            self._seen.add(name)
            self.reports[report.trial_id].append(report)
            self.on_report(report)

    async def until(self, trial_id: str, kind: str, attempt: int = 1) -> report_pb2.TrialReport:
        """Wait for a report of a kind."""

        def found() -> list[report_pb2.TrialReport]:
            return [
                report
                for report in self.reports[trial_id]
                if report.WhichOneof("kind") == kind and report.attempt == attempt
            ]

        async with asyncio.timeout(WAIT_S), self.changed:
            await self.changed.wait_for(lambda: bool(found()))
        return found()[-1]

    def metrics(self, trial_id: str) -> list[Any]:
        return [
            from_value(report.metric.value)
            for report in self.reports[trial_id]
            if report.WhichOneof("kind") == "metric"
        ]

    def kinds(self, trial_id: str) -> list[str]:
        return [str(report.WhichOneof("kind")) for report in self.reports[trial_id]]

    def trial_folder(self, trial_id: str) -> Path:
        return self.folder / "experiments" / self.experiment_id / "trials" / trial_id

    def control(self, runner_id: str, **kind: Any) -> None:
        order = task_pb2.RunnerControl(**kind)
        assert self.bus.signals.publish(control_subject(runner_id), order.SerializeToString())

    def stop(self, runner_id: str, trial_id: str, attempt: int = 1) -> None:
        self.control(
            runner_id,
            stop_trial=task_pb2.StopTrial(
                experiment_id=self.experiment_id, trial_id=trial_id, attempt=attempt
            ),
        )


@asynccontextmanager
async def manager_side(url: str, folder: Path) -> AsyncIterator[ManagerSide]:
    async with NatsBus(NatsSettings(url, TOKEN, name="test manager")) as bus:
        side = ManagerSide(bus, folder)
        listening = asyncio.create_task(side.listen())
        try:
            yield side
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
