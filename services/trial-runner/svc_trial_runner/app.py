"""Composition root of the agent: opens the adapters and wires the rest to them."""

import asyncio
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from nni_proto.runner.v1.runner_service_pb2_grpc import add_RunnerServiceServicer_to_server

from nni_proto.runner.v1 import runner_service_pb2
from svc_common import environment
from svc_common.access.security import Guard
from svc_common.clock import Clock, SystemClock
from svc_common.lifecycle import Service
from svc_common.logs import get_logger
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.ports import Bus
from svc_common.metrics_listener import serve_metrics
from svc_common.own_files import private_folder
from svc_common.rpc.call_telemetry import CallMetrics
from svc_common.rpc.server import GrpcServer
from svc_common.storage.code_archives import CodeArchives
from svc_common.subjects import control_subject
from svc_common.telemetry.metrics import Registry, process_registry
from svc_common.telemetry.tracing import open_tracer
from svc_trial_runner.adapters.agent_folder import (
    open_work,
    runner_id,
    trial_sdk_folder,
    write_tools,
)
from svc_trial_runner.adapters.blob_access import StoreLocations, open_stores
from svc_trial_runner.adapters.blob_values import StoredLargeValues
from svc_trial_runner.adapters.checkpoint_copies import DiskCheckpointCopies
from svc_trial_runner.adapters.claim_journal import FileClaimJournal
from svc_trial_runner.adapters.code_archives import CachedCodeStore
from svc_trial_runner.adapters.gpu_devices import InMemoryGpuDevices, NvmlGpuDevices
from svc_trial_runner.adapters.local_processes import LocalProcesses
from svc_trial_runner.adapters.process_reaper import (
    Reaper,
    become_subreaper,
    kill_descendants,
    machine_boot_id,
    raise_descriptor_limit,
)
from svc_trial_runner.adapters.process_sweeper import ProcSweeper
from svc_trial_runner.adapters.process_table import ProcProcessTable
from svc_trial_runner.adapters.process_use import ProcTrialUse
from svc_trial_runner.adapters.report_spool import DirectoryReportSpool
from svc_trial_runner.adapters.trial_blobs import TarFolders
from svc_trial_runner.adapters.trial_folders import DiskTrialFolders
from svc_trial_runner.adapters.trial_sockets import UnixTrialSockets
from svc_trial_runner.adapters.upload_spool import DirectoryUploadSpool
from svc_trial_runner.agent.agent import RENEW_EVERY_S, Agent
from svc_trial_runner.agent.log_files import TrialLogReader
from svc_trial_runner.agent.presence import PRESENCE_EVERY_S, Presence, RunnerIdentity
from svc_trial_runner.agent_settings import GRACE_S
from svc_trial_runner.attempts.checkpoints import Checkpoints
from svc_trial_runner.attempts.dependencies import AttemptDependencies
from svc_trial_runner.attempts.gpu_allocation import GpuAllocator
from svc_trial_runner.attempts.launch_plans import LaunchPlans
from svc_trial_runner.attempts.output_stream import OutputStreamer
from svc_trial_runner.attempts.output_uploads import OutputUploads
from svc_trial_runner.attempts.process_reuse import ReusedProcesses
from svc_trial_runner.attempts.resource_sampling import ResourceSampler
from svc_trial_runner.attempts.trial_checkpoints import UPLOAD_GRACE_S, TrialCheckpoints
from svc_trial_runner.consumers import ControlConsumer, TaskConsumer
from svc_trial_runner.domain.claims import ServerEnded, ServerStarted
from svc_trial_runner.domain.gpus import GpuDevice
from svc_trial_runner.ports import ClaimJournal, GpuDevices
from svc_trial_runner.reporting.recovery import Recovery
from svc_trial_runner.reporting.reporter import Reporter
from svc_trial_runner.servicer import RunnerServicer
from svc_trial_runner.settings import Settings
from svc_trial_runner.telemetry import Telemetry
from svc_trial_runner.wiring import (
    bus_settings,
    drain_after,
    drain_on_interrupt,
    experiments_root,
    machine_gpu_rules,
    open_environments,
    open_home,
    open_shared_storage,
    stop_when_refused,
    stop_when_silent,
    warm_program,
)

_SERVICE = runner_service_pb2.DESCRIPTOR.services_by_name["RunnerService"].full_name
_LAST_REPORTS_S = 1.0
"""Part of the agent's grace, at its end, for the reports of trials that ended in it."""
_IDLE_S = 600.0
"""Time after which an idle warm interpreter of a live experiment is ended."""
_GIBIBYTE = 1024**3
_NO_LISTENERS: tuple[str, Mapping[str, str]] = ("", {})
"""Address of gRPC, and fields of readiness, of an agent that listens nowhere."""


@dataclass(frozen=True, slots=True)
class _State:
    """Agent's id, boot id, claim journal and report spool, opened at the start."""

    name: str
    boot_id: str
    restarted: bool
    """True if an earlier process has used the folder."""
    journal: FileClaimJournal
    spool: DirectoryReportSpool


async def build(service: Service, settings: Settings) -> Mapping[str, str]:
    """Compose and start the agent process from its settings; return its ready addresses."""
    become_subreaper()
    raise_descriptor_limit()
    reaper = Reaper()
    service.adapters.callback(reaper.close)
    service.adapters.callback(kill_descendants)
    open_home(service, settings)
    state = _open_state(service, settings)
    tools = await asyncio.to_thread(_open_tools, settings)
    bus = NatsBus(bus_settings(settings, state.name))
    if settings.fleet is not None:
        silent = stop_when_silent(service, bus, SystemClock(), settings.fleet.silence_limit_s)
        service.tasks.start(silent, "silence")
        service.tasks.start(stop_when_refused(service, bus.wait_refused), "revocation")
    await service.adapters.enter_async_context(bus)
    reporter = Reporter(bus.inbox, state.spool, service.tasks, state.name, state.boot_id)
    recovery = Recovery(state.journal, state.spool, reporter, bus.tasks, service.tasks)
    ended = recovery.settle()
    processes = _open_processes(service, settings, state.journal, reaper)
    dependencies = await _open_dependencies(
        service, settings, state.journal, reporter, processes, tools
    )
    registry = process_registry("trial-runner", settings.version)
    service.loop_watchdog.register(registry)
    tracer = await open_tracer(service.adapters, "trial-runner", settings.version)
    telemetry = Telemetry(dependencies.clock, registry, tracer)
    dependencies = replace(dependencies, telemetry=telemetry)
    if settings.live_output:
        dependencies = _with_live_output(dependencies, service, settings, bus)
    agent = Agent(
        dependencies,
        bus.tasks,
        service.tasks,
        loses_unrenewed=not settings.bus_is_here,
        slots=settings.slots,
        task_limit=settings.max_trials,
    )
    telemetry.register_gauges(lambda: len(agent.attempts), lambda: processes.warm_count)
    reaper.on_end(lambda _pid, _status: agent.kill_orphans())
    for key in ended:
        agent.remember_ended(key)
    state.spool.before_forgetting(agent.note_progress)
    return await _serve(service, settings, bus, dependencies, agent, state, registry)


def _open_state(service: Service, settings: Settings) -> _State:
    """Open journal and spool of the agent's folder; kill processes of the previous agent."""
    folder = settings.runner_directory
    with suppress(OSError):  # the next line says what is wrong
        private_folder(folder)
    name = runner_id(folder, settings.runner_id)
    claims = folder / "claims.journal"
    restarted = claims.exists()
    journal = FileClaimJournal(claims, machine_boot_id())
    service.adapters.callback(journal.close)
    killed = ProcSweeper().sweep(journal.state)
    if killed:
        get_logger().warning("predecessor's processes killed", count=killed)
    spool = DirectoryReportSpool(folder / "spool")
    service.adapters.callback(spool.close)
    return _State(name, secrets.token_hex(8), restarted, journal, spool)


def _open_tools(settings: Settings) -> Path:
    """Create the folder of trials' code and tools; return the folder with `nni-trial`."""
    open_work(settings.work_directory, settings.code_user)
    return write_tools(settings.work_directory, trial_sdk_folder(), settings.code_user)


def _with_live_output(
    dependencies: AttemptDependencies, service: Service, settings: Settings, bus: Bus
) -> AttemptDependencies:
    live = OutputStreamer(
        bus.log_lines, bus.wait_connected, dependencies.clock, service.tasks, settings.code_user
    )
    return replace(dependencies, live=live)


def _open_processes(
    service: Service, settings: Settings, journal: ClaimJournal, reaper: Reaper
) -> ReusedProcesses:
    processes = LocalProcesses(
        warm_program(settings),
        lambda identity: journal.append(ServerStarted(identity)),
        os.getpid(),
        on_server_end=lambda identity: journal.append(ServerEnded(identity)),
        adopts=True,
        code_user=settings.code_user,
    )
    reaper.on_end(processes.orphan_ended)
    service.adapters.push_async_callback(processes.aclose)
    return ReusedProcesses(processes, settings.reuse_idle_s)


async def _open_dependencies(
    service: Service,
    settings: Settings,
    journal: ClaimJournal,
    reporter: Reporter,
    processes: ReusedProcesses,
    tools: Path,
) -> AttemptDependencies:
    folder = settings.runner_directory
    clock = SystemClock()
    places = StoreLocations(
        settings.home,
        settings.s3,
        settings.manager_grpc,
        settings.security.transport,
        settings.token,
        # The store of an installation is seldom reached from the machines of its platforms.
        by_url=settings.fleet is None,
    )
    opened = await service.adapters.enter_async_context(open_stores(places, clock))
    code_user = settings.code_user
    gpus = _gpu_source(settings)
    archives = TarFolders(code_user)
    uploads = DirectoryUploadSpool(folder / "uploads")
    sockets = UnixTrialSockets(settings.runtime_directory, code_user)
    service.adapters.callback(sockets.close)
    environments = await asyncio.to_thread(open_environments, settings)
    storage = open_shared_storage(service, settings)
    archived = CodeArchives(opened.blobs, settings.work_directory / "code", clock)
    code = CachedCodeStore(archived, code_user, opened.of_attempt)
    return AttemptDependencies(
        clock=clock,
        platform="" if settings.fleet is None else settings.fleet.platform,
        plans=LaunchPlans(code, environments, tools, experiments_root(settings, storage), storage),
        values=StoredLargeValues(opened.of_attempt),
        gpus=GpuAllocator(gpus, ProcProcessTable(), machine_gpu_rules(settings.fleet)),
        resources=ResourceSampler(ProcTrialUse(code_user), gpus, clock, service.tasks),
        folders=DiskTrialFolders(settings.output_limit_bytes, code_user),
        sockets=sockets,
        processes=processes,
        journal=journal,
        reporter=reporter,
        checkpoints=Checkpoints(opened.trials, archives, code_user),
        outputs=OutputUploads(opened.trials, archives, uploads, clock),
        trial_checkpoints=TrialCheckpoints(
            DiskCheckpointCopies(archives, code_user),
            opened.trials,
            max(settings.grace_s, UPLOAD_GRACE_S),
        ),
    )


async def _serve(
    service: Service,
    settings: Settings,
    bus: Bus,
    dependencies: AttemptDependencies,
    agent: Agent,
    state: _State,
    registry: Registry,
) -> Mapping[str, str]:
    """Start gRPC, orders, presence and telemetry of the agent, and last the pull of tasks."""
    clock = dependencies.clock
    identity = RunnerIdentity(
        state.name,
        state.boot_id,
        settings.pool,
        settings.host_name,
        settings.version,
        restarted=state.restarted,
    )
    address, metrics = _NO_LISTENERS
    if settings.fleet is None:  # elsewhere nothing may listen
        address, metrics = await _listen(service, settings, dependencies, agent, identity, registry)
    reachable = replace(identity, grpc_address=address)
    gpu_count = await _gpu_count(dependencies.gpus)
    outputs = dependencies.outputs
    presence = Presence(
        agent, reachable, bus.signals, clock, gpu_count, uploads=lambda: outputs.waiting
    )
    controls = ControlConsumer(await bus.signals.subscribe(control_subject(state.name)), agent)
    tasks = TaskConsumer(await bus.tasks.pull(settings.pool), agent)
    for name, work in {
        "controls": controls.run(),
        "presence": presence.run(),
        "outputs": outputs.run(),
        "renew": _renew_for_ever(agent, clock),
        "tidy": _tidy_for_ever(dependencies, clock),
        "drain": _stop_when_drained(service, settings, agent, outputs),
        "tasks": tasks.run(),
        "close tasks": tasks.close_when_draining(),
    }.items():
        service.tasks.start(work, name)
    if settings.fleet is not None:
        service.tasks.start(drain_after(agent, clock, settings.fleet.max_lifetime_s), "lifetime")
        drain_on_interrupt(service, agent, settings.fleet)

    async def lose() -> None:
        agent.lose_all()  # before anything waits: on TERM to all processes, trials end by it, too

    async def leave() -> None:
        await tasks.finish()
        await _abandon_within_grace(settings, bus, dependencies, agent)
        presence.publish(leaving=True)

    service.takes_work_if(lambda: bus.connected and not agent.draining)
    service.on_stopping(lose)
    service.add_consumer(leave)
    return {"grpc": address, "runner": state.name, **metrics}


async def _abandon_within_grace(
    settings: Settings, bus: Bus, dependencies: AttemptDependencies, agent: Agent
) -> None:
    """End all attempts as lost; store outputs and send the last reports within the time limit."""
    clock = dependencies.clock
    # Without a bus no report arrives and no checkpoint is stored: a long grace is for nothing.
    grace_s = settings.grace_s if bus.connected else min(settings.grace_s, GRACE_S)
    end_s = clock.monotonic_s() + grace_s - _LAST_REPORTS_S
    await agent.abandon_all(grace_s - _LAST_REPORTS_S)
    if settings.fleet is not None and bus.connected:  # as when it is drained
        await dependencies.outputs.wait_stored(limit_s=end_s - clock.monotonic_s())
    # Reports that do not arrive in time are in the spool for the next agent.
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_REPORTS_S):
            await dependencies.reporter.wait_idle()


async def _listen(
    service: Service,
    settings: Settings,
    dependencies: AttemptDependencies,
    agent: Agent,
    identity: RunnerIdentity,
    registry: Registry,
) -> tuple[str, Mapping[str, str]]:
    """Start gRPC and metrics; return the address of gRPC and the fields of readiness of metrics."""
    guard = _open_guard(service, settings)
    address = await _serve_grpc(service, settings, guard, dependencies, agent, identity, registry)
    return address, await serve_metrics(service, registry, guard)


def _open_guard(service: Service, settings: Settings) -> Guard:
    """Build authentication and TLS; raise if the S3 store would be called in plain text."""
    guard = Guard.open(settings.security, settings.token, settings.home)
    service.adapters.callback(guard.close)
    if settings.s3 is not None:
        guard.transport.check_url(environment.NNI_S3_ENDPOINT, settings.s3.endpoint)
    return guard


async def _serve_grpc(
    service: Service,
    settings: Settings,
    guard: Guard,
    dependencies: AttemptDependencies,
    agent: Agent,
    identity: RunnerIdentity,
    registry: Registry,
) -> str:
    """Start the gRPC server with `RunnerService`; return its address."""
    server = GrpcServer([_SERVICE], guard, "NNI_RUNNER_GRPC", CallMetrics(registry))
    logs = TrialLogReader(agent, settings.work_directory / "experiments", settings.code_user)
    now = dependencies.clock.now()
    servicer = RunnerServicer(agent, identity, now, dependencies.gpus, dependencies.processes, logs)
    server.register(lambda grpc: add_RunnerServiceServicer_to_server(servicer, grpc))
    port = await server.start(settings.grpc_host, settings.grpc_port)
    service.on_stopping(server.set_not_serving)
    service.add_server(server.stop)
    return f"{settings.grpc_host}:{port}"


async def _renew_for_ever(agent: Agent, clock: Clock) -> None:
    while True:
        await clock.sleep(RENEW_EVERY_S)
        await agent.renew()


async def _tidy_for_ever(dependencies: AttemptDependencies, clock: Clock) -> None:
    """Periodically end idle interpreters, resume stopped ones and retry GPU requests, for ever."""
    while True:
        await clock.sleep(PRESENCE_EVERY_S)
        dependencies.processes.release_idle(_IDLE_S)
        dependencies.processes.continue_stopped()
        if dependencies.gpus.waiting:
            await dependencies.gpus.recheck()


async def _stop_when_drained(
    service: Service, settings: Settings, agent: Agent, outputs: OutputUploads
) -> None:
    await agent.wait_drained()
    if settings.fleet is not None:  # no next agent finds what is not stored
        await outputs.wait_stored()
    service.stop()


def _gpu_source(settings: Settings) -> GpuDevices:
    if settings.fake_gpus is None:
        return NvmlGpuDevices()
    return InMemoryGpuDevices(
        [GpuDevice(index, "pretended", _GIBIBYTE) for index in range(settings.fake_gpus)]
    )


async def _gpu_count(gpus: GpuAllocator) -> int:
    devices, _ = await gpus.devices()
    return len(devices)
