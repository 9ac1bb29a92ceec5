"""Bench of the agent: real adapters in a temporary folder, on an in-memory bus."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from nni_proto.experiment.v1 import inbox_pb2
from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import report_pb2
from nni_wire.values import write_value
from svc_common.clock import SystemClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_common.messaging.ports import Task
from svc_common.storage.code_archives import CodeArchives
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.retries import RetryingBlobExchange
from svc_common.tasks import TaskOwner
from svc_trial_runner.adapters.blob_values import StoredLargeValues
from svc_trial_runner.adapters.checkpoint_copies import DiskCheckpointCopies
from svc_trial_runner.adapters.claim_journal import FileClaimJournal
from svc_trial_runner.adapters.code_archives import CachedCodeStore
from svc_trial_runner.adapters.environments import FileEnvironments
from svc_trial_runner.adapters.gpu_devices import InMemoryGpuDevices
from svc_trial_runner.adapters.local_processes import LocalProcesses
from svc_trial_runner.adapters.process_table import ProcProcessTable
from svc_trial_runner.adapters.report_spool import DirectoryReportSpool
from svc_trial_runner.adapters.trial_blobs import StoredTrialBlobs, TarFolders
from svc_trial_runner.adapters.trial_folders import DiskTrialFolders
from svc_trial_runner.adapters.trial_sockets import UnixTrialSockets
from svc_trial_runner.adapters.upload_spool import DirectoryUploadSpool
from svc_trial_runner.agent.agent import Agent
from svc_trial_runner.attempts.checkpoints import Checkpoints
from svc_trial_runner.attempts.dependencies import AttemptDependencies
from svc_trial_runner.attempts.gpu_allocation import GpuAllocator
from svc_trial_runner.attempts.launch_plans import LaunchPlans
from svc_trial_runner.attempts.output_uploads import OutputUploads
from svc_trial_runner.attempts.process_reuse import ReusedProcesses
from svc_trial_runner.attempts.trial_checkpoints import TrialCheckpoints
from svc_trial_runner.reporting.reporter import Reporter

WAIT_S = 30.0
POOL = "pool"
EXPERIMENT = "exp"


@dataclass
class Bench:
    """Parts of an agent, and the reports that its manager received."""

    folder: Path
    broker: InMemoryBroker
    bus: InMemoryBus
    gpus: InMemoryGpuDevices
    blobs: InMemoryBlobStore
    dependencies: AttemptDependencies
    spool: DirectoryReportSpool
    tasks: TaskOwner
    failures: list[BaseException] = field(default_factory=list)
    heard: list[report_pb2.TrialReport] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def agent(self, **options: Any) -> Agent:
        options.setdefault("loses_unrenewed", False)
        return Agent(self.dependencies, self.bus.tasks, self.tasks, **options)

    async def deliver(self, agent: Agent, message: task_pb2.TrialTask) -> Task:
        """Deliver a task through the queue to the agent."""
        feed = await self.bus.tasks.pull(POOL)
        feed.grant(1)
        await self.bus.tasks.publish(
            POOL, message.SerializeToString(), message_id=os.urandom(4).hex()
        )
        task = await anext(aiter(feed))
        agent.take(task)
        await feed.aclose()
        return task

    async def listen(self) -> None:
        async for batch in self.bus.inbox.follow(EXPERIMENT):
            for stored in batch:
                message = inbox_pb2.InboxMessage.FromString(stored.payload)
                self.heard.extend(message.runner_reports.reports)
            async with self.changed:
                self.changed.notify_all()

    async def until(self, look: Callable[[], Any]) -> Any:
        async with asyncio.timeout(WAIT_S), self.changed:
            await self.changed.wait_for(look)
        return look()

    async def until_kind(self, trial_id: str, kind: str) -> report_pb2.TrialReport:
        def find() -> list[report_pb2.TrialReport]:
            return [
                report
                for report in self.heard
                if report.trial_id == trial_id and report.WhichOneof("kind") == kind
            ]

        reports: list[report_pb2.TrialReport] = await self.until(find)
        return reports[-1]

    def kinds(self, trial_id: str) -> list[str]:
        return [str(r.WhichOneof("kind")) for r in self.heard if r.trial_id == trial_id]

    def task(
        self,
        trial_id: str,
        command: str = "true",
        parameters: Any = None,
        attempt: int = 1,
        **spec: Any,
    ) -> task_pb2.TrialTask:
        options = spec.pop("platform_options", None)
        task = task_pb2.TrialTask(
            experiment_id=EXPERIMENT, trial_id=trial_id, attempt=attempt, parameter_id=1
        )
        task.spec.command = command
        task.spec.code_directory = str(self.folder)
        task.spec.experiment_directory = str(self.folder / "experiment")
        for name, value in spec.items():
            setattr(task.spec, name, value)
        if options is not None:
            write_value(task.spec.platform_options, options)
        write_value(task.parameters, {} if parameters is None else parameters)
        return task


@pytest_asyncio.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    failures: list[BaseException] = []
    async with AsyncExitStack() as stack:
        broker = InMemoryBroker()
        bus = await stack.enter_async_context(InMemoryBus(broker))
        (tmp_path / "runner").mkdir()
        journal = FileClaimJournal(tmp_path / "runner/claims.journal", "boot")
        stack.callback(journal.close)
        spool = DirectoryReportSpool(tmp_path / "runner/spool")
        stack.callback(spool.close)
        sockets = UnixTrialSockets()
        stack.callback(sockets.close)
        processes = LocalProcesses(None, lambda _identity: None, os.getpid())
        stack.push_async_callback(processes.aclose)
        tasks = TaskOwner(lambda _name, error: failures.append(error))
        stack.push_async_callback(tasks.aclose)
        gpus = InMemoryGpuDevices()
        blobs = InMemoryBlobStore()
        patient = RetryingBlobExchange(blobs, SystemClock(), wait_for_space=True)
        trial_bytes = StoredTrialBlobs(patient, lambda _: patient)
        uploads = DirectoryUploadSpool(tmp_path / "runner/uploads")
        dependencies = AttemptDependencies(
            clock=SystemClock(),
            plans=LaunchPlans(
                CachedCodeStore(CodeArchives(blobs, tmp_path / "code", SystemClock())),
                FileEnvironments({"PATH": os.environ["PATH"]}, sys.executable),
                tmp_path / "tools",
                tmp_path / "root",
            ),
            values=StoredLargeValues(lambda _: blobs),
            gpus=GpuAllocator(gpus, ProcProcessTable()),
            folders=DiskTrialFolders(1_000_000),
            sockets=sockets,
            processes=ReusedProcesses(processes, idle_s=3600.0),
            journal=journal,
            reporter=Reporter(bus.inbox, spool, tasks, "runner", "boot1"),
            checkpoints=Checkpoints(trial_bytes, TarFolders()),
            outputs=OutputUploads(trial_bytes, TarFolders(), uploads, SystemClock()),
            trial_checkpoints=TrialCheckpoints(DiskCheckpointCopies(TarFolders()), trial_bytes),
        )
        bench = Bench(tmp_path, broker, bus, gpus, blobs, dependencies, spool, tasks, failures)
        listening = asyncio.create_task(bench.listen())
        try:
            yield bench
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
    assert failures == []


@pytest.fixture
def sdk() -> Path:
    """Return the folder that has the package `nni`."""
    return Path(__file__).resolve().parents[4] / "sdk"
