"""Composition root of the agent: opens adapters, builds the rest, names what is concrete."""

import asyncio
import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from nni_proto.runner.v1.runner_service_pb2_grpc import add_RunnerServiceServicer_to_server

from nni_proto.runner.v1 import runner_service_pb2
from svc_common import environment
from svc_common.clock import Clock, SystemClock
from svc_common.grpc_server import GrpcServer
from svc_common.lifecycle import Service
from svc_common.logs import get_logger
from svc_common.messaging.nats_bus import NatsBus, NatsSettings
from svc_common.messaging.ports import Bus
from svc_common.storage.directory import DirectoryBlobStore
from svc_common.subjects import control_subject
from svc_trial_runner.adapters.blob_values import BlobValues
from svc_trial_runner.adapters.claim_journal import FileClaimJournal
from svc_trial_runner.adapters.code_archives import CachedCodeStore
from svc_trial_runner.adapters.environments import FileEnvironments
from svc_trial_runner.adapters.gpus import InMemoryGpuDevices, NvmlGpuDevices
from svc_trial_runner.adapters.local_processes import LocalProcesses
from svc_trial_runner.adapters.process_table import ProcProcessTable
from svc_trial_runner.adapters.report_spool import DirectoryReportSpool
from svc_trial_runner.adapters.runner_folder import runner_id, trial_sdk_folder, write_tools
from svc_trial_runner.adapters.sweep import ProcSweeper
from svc_trial_runner.adapters.this_process import (
    Reaper,
    become_subreaper,
    kill_descendants,
    machine_boot_id,
    raise_descriptor_limit,
)
from svc_trial_runner.adapters.trial_folders import DiskTrialFolders
from svc_trial_runner.adapters.trial_sockets import UnixTrialSockets
from svc_trial_runner.agent import RENEW_EVERY_S, Agent
from svc_trial_runner.allotments import GpuDesk
from svc_trial_runner.attempts import Workshop
from svc_trial_runner.consumers import ControlConsumer, TaskConsumer
from svc_trial_runner.domain.claims import ServerStarted
from svc_trial_runner.domain.gpus import GpuDevice
from svc_trial_runner.logs_of_trials import TrialLogs
from svc_trial_runner.plans import Plans
from svc_trial_runner.ports import GpuDevices
from svc_trial_runner.presence import PRESENCE_EVERY_S, Presence, RunnerIdentity
from svc_trial_runner.recovery import Recovery
from svc_trial_runner.reporting import Reporter
from svc_trial_runner.servicer import RunnerServicer
from svc_trial_runner.settings import Settings

_SERVICE = runner_service_pb2.DESCRIPTOR.services_by_name["RunnerService"].full_name
_LEAVING_S = 4.0
"""For ending trials when the agent is told to stop; less than the grace of the service."""
_LAST_WORDS_S = 1.0
_GIBIBYTE = 1024**3


async def build(service: Service, settings: Settings) -> Mapping[str, str]:
    """Start the agent; return the facts of its readiness."""
    become_subreaper()
    raise_descriptor_limit()
    reaper = Reaper()
    service.adapters.callback(reaper.close)
    service.adapters.callback(kill_descendants)
    folder = settings.runner_directory
    name = runner_id(folder)
    journal = FileClaimJournal(folder / "claims.journal", machine_boot_id())
    service.adapters.callback(journal.close)
    killed = ProcSweeper().sweep(journal.state)
    if killed:
        get_logger().warning("predecessor's processes killed", count=killed)
    trial_sdk = trial_sdk_folder()
    tools = await asyncio.to_thread(write_tools, folder, trial_sdk)
    blobs = DirectoryBlobStore(settings.home / "blobs")
    bus = NatsBus(NatsSettings(settings.nats_url, settings.token, name=name))
    await service.adapters.enter_async_context(bus)
    spool = DirectoryReportSpool(folder / "spool")
    service.adapters.callback(spool.close)
    clock = SystemClock()
    boot_id = secrets.token_hex(8)
    reporter = Reporter(bus.inbox, spool, service.tasks, name, boot_id)
    ended = Recovery(journal, spool, reporter, bus.tasks, service.tasks).settle()

    sockets = UnixTrialSockets(settings.runtime_directory)
    service.adapters.callback(sockets.close)
    processes = LocalProcesses(
        trial_sdk / "warm.py" if settings.warm else None,
        lambda identity: journal.append(ServerStarted(identity)),
        os.getpid(),
    )
    reaper.on_end(processes.orphan_ended)
    service.adapters.push_async_callback(processes.aclose)
    gpus = GpuDesk(_gpu_source(settings), ProcProcessTable())
    workshop = Workshop(
        clock=clock,
        plans=Plans(
            CachedCodeStore(blobs, folder / "code"),
            FileEnvironments(environment.for_user_code(), sys.executable),
            tools,
            folder / "experiments",
        ),
        values=BlobValues(blobs),
        gpus=gpus,
        folders=DiskTrialFolders(settings.output_limit_bytes),
        sockets=sockets,
        processes=processes,
        journal=journal,
        reporter=reporter,
    )
    agent = Agent(
        workshop,
        bus.tasks,
        service.tasks,
        loses_unrenewed=not settings.bus_is_here,
        slots=settings.slots,
        task_limit=settings.max_trials,
    )
    for key in ended:
        agent.remember_ended(key)
    spool.before_forgetting(agent.note_progress)
    return await _serve(service, settings, bus, workshop, agent, name, boot_id)


async def _serve(
    service: Service,
    settings: Settings,
    bus: Bus,
    workshop: Workshop,
    agent: Agent,
    name: str,
    boot_id: str,
) -> Mapping[str, str]:
    """Open the agent to the world: gRPC, controls, presence, and last of all tasks."""
    clock = workshop.clock
    server = GrpcServer([_SERVICE], settings.token)
    identity = RunnerIdentity(name, boot_id, settings.pool, settings.host_name, settings.version)
    logs = TrialLogs(agent, settings.runner_directory / "experiments")
    servicer = RunnerServicer(agent, identity, clock.now(), workshop.gpus, workshop.processes, logs)
    server.register(lambda grpc: add_RunnerServiceServicer_to_server(servicer, grpc))
    address = f"127.0.0.1:{await server.start()}"
    service.on_stopping(server.say_not_serving)
    service.add_server(server.stop)

    gpu_count = await _gpu_count(workshop.gpus)
    presence = Presence(
        agent, replace(identity, grpc_address=address), bus.signals, clock, gpu_count
    )
    controls = ControlConsumer(await bus.signals.subscribe(control_subject(name)), agent)
    service.tasks.start(controls.run(), "controls")
    service.tasks.start(presence.run(), "presence")
    service.tasks.start(_renew_for_ever(agent, clock), "renew")
    service.tasks.start(_recheck_for_ever(workshop.gpus, clock), "recheck GPUs")
    service.tasks.start(_stop_when_drained(service, agent), "drain")
    tasks = TaskConsumer(await bus.tasks.pull(settings.pool), agent)
    service.tasks.start(tasks.run(), "tasks")
    service.tasks.start(tasks.close_when_draining(), "close tasks")

    async def leave() -> None:
        await tasks.finish()
        await agent.abandon_all(_LEAVING_S)
        # What does not arrive in time is in the spool for the next agent.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await workshop.reporter.wait_idle()
        presence.say(leaving=True)

    service.add_consumer(leave)
    return {"grpc": address, "runner": name}


async def _renew_for_ever(agent: Agent, clock: Clock) -> None:
    while True:
        await clock.sleep(RENEW_EVERY_S)
        await agent.renew()


async def _recheck_for_ever(gpus: GpuDesk, clock: Clock) -> None:
    """Look after those who wait for a GPU that a stranger uses: its end is no event for us."""
    while True:
        await clock.sleep(PRESENCE_EVERY_S)
        if gpus.waiting:
            await gpus.recheck()


async def _stop_when_drained(service: Service, agent: Agent) -> None:
    await agent.wait_drained()
    service.stop()


def _gpu_source(settings: Settings) -> GpuDevices:
    if settings.fake_gpus is None:
        return NvmlGpuDevices()
    return InMemoryGpuDevices(
        [GpuDevice(index, "pretended", _GIBIBYTE) for index in range(settings.fake_gpus)]
    )


async def _gpu_count(gpus: GpuDesk) -> int:
    devices, _ = await gpus.devices()
    return len(devices)
