"""Execution of one attempt of a trial, from the claimed task to the last report."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from svc_common.clock import SteadyClock
from svc_common.experiment_events.causes import LossCause, LossReason, WaitCause, WaitReason
from svc_common.logs import get_logger
from svc_trial_runner.attempts.dependencies import AttemptDependencies
from svc_trial_runner.attempts.launch_plans import LaunchPlan
from svc_trial_runner.attempts.resource_sampling import SampledTrial
from svc_trial_runner.attempts.trial_checkpoints import AttemptCheckpoints
from svc_trial_runner.attempts.trial_session import AttemptSession
from svc_trial_runner.converters import report_entry
from svc_trial_runner.domain.attempt import AttemptStateMachine, Order, Phase, StopTrigger
from svc_trial_runner.domain.checkpoints import CheckpointFolders, checkpoint_folders
from svc_trial_runner.domain.claims import AttemptKey, Ended, Started
from svc_trial_runner.domain.gpus import GpuAllocation, GpuRequest, cuda_visible_devices
from svc_trial_runner.domain.launch import (
    TOKEN_VARIABLE,
    TrialIdentity,
    parameter_file,
    run_script,
    state_line,
    trial_variables,
)
from svc_trial_runner.domain.reports import (
    AttemptLost,
    AttemptReport,
    AttemptWaits,
    CheckpointSaved,
    ExitCause,
    MetricReported,
    ProcessExited,
    ProcessStarted,
    SavedCheckpoint,
    ended_by_shutdown_signal,
    is_last,
    shell_code,
    split_wait_status,
)
from svc_trial_runner.domain.tasks import BlobKey, TrialWork
from svc_trial_runner.ports import (
    FinishedTrial,
    LaunchError,
    LaunchRequest,
    StarterEndedError,
    TrialFilesRequest,
    TrialOutput,
    TrialProcess,
    UnfitTrialError,
    WaitingProcess,
)

T = TypeVar("T")

_KILLED: Final = 9
"""Wait status assumed for a process whose starter died: the kernel killed it."""
_BLOB_WAIT: Final = WaitReason(WaitCause.BLOB, object="its code and parameters")
_STARTER_KILLED: Final = "the interpreter that had started it was killed"


def _exit_cause(cause: StopTrigger | None) -> ExitCause:
    """Return the exit cause to report for a stop trigger: stopped, time limit, else ended."""
    if cause is StopTrigger.STOPPED:
        return ExitCause.STOPPED
    return ExitCause.TIME_LIMIT if cause is StopTrigger.TIME_LIMIT else ExitCause.ENDED


class AttemptRun:
    """Run of one trial attempt: prepares, starts and stops its process, and sends its reports.

    Args:
        work: the task.
        claim_id: id of this agent's claim.
        token: secret of the trial on the socket.
        dependencies: what all attempts share.
        on_over: called once, when the last report has arrived (or none is needed).
    """

    def __init__(
        self,
        work: TrialWork,
        claim_id: str,
        token: str,
        dependencies: AttemptDependencies,
        on_over: Callable[["AttemptRun"], None],
    ) -> None:
        self.work = work
        self.claim_id = claim_id
        self.token = token
        self.process: TrialProcess | None = None
        self.output: TrialOutput | None = None
        self.started_at: datetime | None = None
        self.gpu_indices: tuple[int, ...] = ()
        self.wait: WaitReason | None = None
        """Why it has not started; None: it has, or is about to."""
        self._loss: LossReason | None = None
        self._dependencies = dependencies
        # The reported times measure durations, whatever is done to the wall clock.
        self._clock = SteadyClock(dependencies.clock)
        self._on_over = on_over
        self._state = AttemptStateMachine()
        self._next_report = 0
        self._early: list[MetricReported] = []
        self._timers: list[asyncio.TimerHandle] = []
        self._stop_sampling: Callable[[], None] | None = None
        self._silent = False
        self._stop_requested = asyncio.Event()
        self._directory = ""
        """Folder of the trial, once it exists."""
        self._saving: asyncio.Future[SavedCheckpoint | None] | None = None
        self._checkpoints: AttemptCheckpoints | None = None
        """Checkpoints for the next attempt, once the trial's folder exists."""

    @property
    def key(self) -> AttemptKey:
        """Key of the attempt."""
        return self.work.key

    @property
    def _isolated(self) -> bool:
        """True for a retry of the trial: its process is started by a spawner of its own."""
        return self.key.attempt > 1

    @property
    def phase(self) -> Phase:
        """Current phase."""
        return self._state.phase

    @property
    def next_report(self) -> int:
        """Number of the next report."""
        return self._next_report

    # --- execution

    async def run(self) -> None:
        """Execute the attempt to its last report; a failed launch is reported, not raised."""
        try:
            await self._run()
        except LaunchError as error:
            if isinstance(error, StarterEndedError):
                await self._wait_for_shutdown(None)
            self._not_started(error)
        except OSError as error:
            if self.process is not None:
                raise
            self._not_started(LaunchError(str(error)))
        finally:
            await self._clean_up()

    async def _run(self) -> None:
        self.wait = _BLOB_WAIT
        plan = await self._wait_reporting(self._dependencies.plans.plan(self.work), "its code")
        if self._is_over():
            return  # stopped meanwhile: the folder may be another attempt's by now
        checkpoints = await self._prepare_folder(plan)
        parameters = self.work.parameters
        if isinstance(parameters, BlobKey):
            parameters = await self._dependencies.values.load(self.key, parameters)
        folders = await self._checkpoint_folders(parameters)
        if folders is not None:
            parameters = folders.parameters
        allocation = await self._acquire_gpus()
        if allocation is None:
            return
        process = await self._start(plan, parameters, allocation)
        status = await process.ended
        if status != 0:
            await self._wait_for_shutdown(status)
        self._state.process_ended()
        if status is None:
            # Its starter died, and the kernel ended the leader with it: end the rest.
            self._dependencies.processes.kill(process, self.token)
        await self._read_to_the_end(process)
        saved = None
        if folders is not None and status == 0 and self._state.stop_trigger is None:
            saved = await self._save(folders)
        await checkpoints.finish(wanted=self._may_go_on(status))
        await self._dependencies.folders.release(self._directory)
        self._state.read()
        self._end(status, saved)

    def _is_over(self) -> bool:
        return self._state.phase is Phase.OVER

    async def _prepare_folder(self, plan: LaunchPlan) -> AttemptCheckpoints:
        """Create the trial's folder; restore the checkpoint of a retry; return its checkpoints."""
        self._directory = f"{plan.experiment_directory}/trials/{self.key.trial_id}"
        if self.work.spec.outputs_travel:
            await self._dependencies.outputs.begin(self._directory)
        self._dependencies.folders.prepare(self._directory, plan.output_folder)
        outputs = f"{self._directory}/{plan.output_folder}".rstrip("/")
        self._checkpoints = checkpoints = self._dependencies.trial_checkpoints.of_attempt(
            self.work, outputs, self._report
        )
        if self._isolated:
            await self._wait_reporting(checkpoints.restore(), "the checkpoint that it goes on from")
        return checkpoints

    async def _acquire_gpus(self) -> GpuAllocation | None:
        """Wait for the trial's GPUs, which `_clean_up` releases; None: the attempt was stopped."""
        if self._is_over():
            return None  # the stop has found no request to cancel
        key, rules = self.key, self.work.spec.gpus
        request = GpuRequest(
            key.experiment_id,
            key.trial_id,
            rules.count,
            rules.allowed_indices,
            rules.trials_per_gpu,
            rules.use_active,
            retried=key.attempt > 1,
        )
        allocation = await self._dependencies.gpus.acquire(request, self._waits)
        if allocation is not None:
            self.gpu_indices = allocation.indices or ()
        return None if self._is_over() else allocation

    def _may_go_on(self, status: int | None) -> bool:
        """Return whether another attempt of the trial may follow, by how this one ends."""
        trigger = self._state.stop_trigger
        return status != 0 if trigger is None else trigger is StopTrigger.LOST

    async def _wait_for_shutdown(self, status: int | None) -> None:
        """Wait briefly for the agent's own stop, which explains a trial that ended by shutdown.

        A machine that shuts down sends TERM to all processes at once, and trials end faster than
        the agent handles its signal, with any exit code if they handle theirs. Such a trial is
        lost, not failed.

        Args:
            status: wait status of the trial; None: its end was not seen.
        """
        if self._state.stop_trigger is not None:
            return
        notice_s = self._dependencies.handled_signal_notice_s
        if ended_by_shutdown_signal(status):
            notice_s = self._dependencies.shutdown_notice_s
        with suppress(TimeoutError):
            async with asyncio.timeout(notice_s):
                await self._stop_requested.wait()

    async def _start(
        self,
        plan: LaunchPlan,
        parameters: Any,  # noqa: ANN401 - any JSON value
        allocation: GpuAllocation,
    ) -> TrialProcess:
        dependencies = self._dependencies
        self._state.launching()
        self.wait = None
        folder = await dependencies.plans.folder(plan, self._directory)
        variables = self._variables(plan, folder, allocation)
        self.output = output = self._open_output(plan, parameters, folder, variables)
        if dependencies.live is not None:
            dependencies.live.begin(self.key, variables["NNI_SYS_DIR"], output)
        dependencies.sockets.admit(self.token, self._session(parameters))
        if dependencies.telemetry is not None and (
            context := dependencies.telemetry.traceparent(self.work)
        ):
            variables["TRACEPARENT"] = context
        variables["NNI_TRIAL_SOCKET"] = dependencies.sockets.path
        variables[TOKEN_VARIABLE] = self.token
        process = await dependencies.processes.launch(
            LaunchRequest(
                label=self.claim_id,
                command=plan.command,
                python=plan.python,
                code=plan.code_directory,
                directory=folder,
                base=plan.base,
                variables=variables,
                stdout=output.stdout,
                stderr=output.stderr,
                isolated=self._isolated,
                reuse_group=f"{self.key.experiment_id}/{self.work.spec_digest.hex()}",
            )
        )
        output.launched()
        self._started(process)
        return process

    def _session(self, parameters: Any) -> AttemptSession:  # noqa: ANN401 - any JSON value
        return AttemptSession(
            self.work,
            parameters,
            self._dependencies.values,
            self._clock,
            self._dependencies.reporter,
            self._metric,
            None if self._isolated else self._keep_process,
            self._checkpoints,
        )

    def _keep_process(self, waiting: WaitingProcess) -> bool:
        """End the attempt with success, keep its process for another trial; False: not possible."""
        if self.process is None or self._state.phase is not Phase.RUNNING:
            return False
        return self._dependencies.processes.wait_for_next(self.process, waiting)

    async def _checkpoint_folders(self, parameters: object) -> CheckpointFolders | None:
        """Unpack the checkpoint to load; return the trial's folders; None: no transfer needed."""
        if not self.work.spec.checkpoints_travel:
            return None
        folders = checkpoint_folders(parameters, self._directory)
        if folders is not None and self._state.phase is not Phase.OVER:
            filling = self._dependencies.checkpoints.fill(
                self.key, folders, self._directory, self.work.load_checkpoint
            )
            await self._wait_reporting(filling, "the checkpoint that it loads")
        return folders

    async def _save(self, folders: CheckpointFolders) -> SavedCheckpoint | None:
        """Upload and return the saved checkpoint; None: none, or it failed (attempt is lost)."""
        self._state.saving()
        keeping = self._dependencies.checkpoints.keep(self.key, folders)
        self._saving = asyncio.ensure_future(keeping)
        try:
            return await self._wait_reporting(
                self._saving, "room for the checkpoint that it has saved"
            )
        except LaunchError as error:
            self.stop(StopTrigger.LOST, LossReason(LossCause.AGENT_FAILED, detail=str(error)))
        except asyncio.CancelledError:
            if self._state.stop_trigger is None:
                raise
        return None

    async def _wait_reporting(self, transfer: Awaitable[T], what: str) -> T:
        """Await a transfer; report to the manager that the trial waits if it takes long."""

        def notify() -> None:
            trouble = self._dependencies.checkpoints.trouble
            self._waits(WaitReason(WaitCause.BLOB, object=what, detail=trouble))

        # No task of its own: most transfers end at once, since the plan is cached.
        after_s = self._dependencies.waiting_notice_after_s
        timer = asyncio.get_running_loop().call_later(after_s, notify)
        try:
            return await transfer
        finally:
            timer.cancel()

    def _variables(
        self, plan: LaunchPlan, folder: str, allocation: GpuAllocation
    ) -> dict[str, str]:
        identity = TrialIdentity(
            self.key.experiment_id,
            self.key.trial_id,
            self.work.sequence_id,
            self._dependencies.platform or self.work.spec.platform,
            self._directory,
            folder,
            f"{self._directory}/{plan.output_folder}".rstrip("/"),
        )
        return trial_variables(identity, cuda_visible_devices(allocation))

    def _open_output(
        self,
        plan: LaunchPlan,
        parameters: Any,  # noqa: ANN401 - any JSON value
        folder: str,
        variables: dict[str, str],
    ) -> TrialOutput:
        work = self.work
        request = TrialFilesRequest(
            Path(variables["NNI_SYS_DIR"]),
            run_script(variables, folder, plan.command),
            parameter_file(work.parameter_id, parameters, work.parameter_source),
            work.spec.output_limit_bytes,
        )
        if self._isolated and self._dependencies.resources is not None:
            # With the earlier attempt's output, before live views read it as that of this one.
            self._dependencies.resources.forget(self._directory)
        return self._dependencies.folders.open(request)

    def _started(self, process: TrialProcess) -> None:
        self.process = process
        self.started_at = now = self._clock.now()
        self._dependencies.journal.append(Started(self.claim_id, process.identity))
        pid = process.identity.pid
        self._report(ProcessStarted(now, pid, self.gpu_indices, process.warm))
        for metric in self._early:
            self._report(metric)
        self._sample_use(process)
        limit_s = self.work.spec.time_limit_s
        if self._state.launched() is Order.TERMINATE:
            self._terminate()
        elif limit_s is not None:
            self._after(limit_s, lambda: self.stop(StopTrigger.TIME_LIMIT))

    def _sample_use(self, process: TrialProcess) -> None:
        """Sample the process's use of CPU, memory and GPUs until the attempt ends."""
        resources, output = self._dependencies.resources, self.output
        if resources is None or output is None:
            return
        self._stop_sampling = resources.begin(
            SampledTrial(
                process.identity,
                self._directory,
                self.gpu_indices,
                process.ended,
                output.announce,
            )
        )

    def stop(self, trigger: StopTrigger, loss: LossReason | None = None) -> None:
        """Stop the attempt by its phase: terminate the process, end at once, or cancel saving.

        Args:
            trigger: decides what is reported.
            loss: cause of the loss, for LOST; the first one counts.
        """
        self._loss = self._loss or loss
        self._stop_requested.set()
        if trigger is not StopTrigger.LOST and self._checkpoints is not None:
            self._checkpoints.cancel()  # no attempt will follow
        order = self._state.stop(trigger)
        if order is Order.TERMINATE:
            self._terminate()
        elif order is Order.END:
            self._dependencies.gpus.give_up(self.key.experiment_id, self.key.trial_id)
            self._end(None)
        elif order is Order.GIVE_UP and self._saving is not None:
            self._saving.cancel()

    def _terminate(self) -> None:
        assert self.process is not None
        self._dependencies.processes.terminate(self.process, self.token)
        self._after(self.work.spec.grace_s, self._kill)

    def _kill(self) -> None:
        if self._state.grace_over() is Order.KILL and self.process is not None:
            self._dependencies.processes.kill(self.process, self.token)

    def _after(self, delay_s: float, call: Callable[[], None]) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(delay_s, call))

    # --- end

    async def _read_to_the_end(self, process: TrialProcess) -> None:
        """Read socket and pipes to their end, within the grace; then end leftover processes."""
        assert self.output is not None
        heard = not self._dependencies.sockets.catch_up(self.token)
        if self.output.catch_up() and heard:
            self._end_leftovers(process)
            return
        waits = {self.output.at_end}
        if not heard:
            quiet: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._dependencies.sockets.when_quiet(self.token, lambda: quiet.set_result(None))
            waits.add(quiet)
        await asyncio.wait(waits, timeout=self.work.spec.grace_s)
        self._dependencies.sockets.catch_up(self.token)
        self.output.cut()
        self._end_leftovers(process)

    def _end_leftovers(self, process: TrialProcess) -> None:
        """Send TERM to group members that outlive their leader, and KILL after the grace."""
        processes = self._dependencies.processes
        if not processes.has_leftovers(process):
            return
        token = self.token
        processes.terminate(process, token)
        # Not one of the attempt's timers: they end with it, and this one must fire.
        asyncio.get_running_loop().call_later(
            self.work.spec.grace_s, lambda: processes.kill(process, token)
        )

    def _end(self, status: int | None, saved: SavedCheckpoint | None = None) -> None:
        """Send the attempt's last report (exit or loss) by trigger and status; none if dropped.

        Args:
            status: wait status of the process; None: it never ran, or its end was not seen.
            saved: the stored checkpoint.
        """
        cause = self._state.stop_trigger
        if cause is StopTrigger.DROPPED:
            self._drop()
        elif cause is StopTrigger.LOST:
            self._report(AttemptLost(self._loss or LossReason(LossCause.AGENT_FAILED)))
        elif self.process is None:
            self._report(ProcessExited(self._clock.now(), _exit_cause(cause), None, 0, ""))
        elif status is None and cause is None:
            # A retried attempt has a starter of its own, which only it can have killed.
            alone = self._isolated
            killed = LossCause.AGENT_FAILED if alone else LossCause.STARTER_KILLED
            self._report(AttemptLost(LossReason(killed, detail=_STARTER_KILLED)))
        else:
            self._exited(_KILLED if status is None else status, cause, saved)

    def _exited(
        self, status: int, cause: StopTrigger | None, saved: SavedCheckpoint | None
    ) -> None:
        assert self.output is not None
        exit_code, signal = split_wait_status(status)
        now = self._clock.now()
        self.output.write_state(
            state_line(shell_code(exit_code, signal), int(now.timestamp() * 1000))
        )
        detail = "" if exit_code == 0 else self.output.stderr_tail()
        self._report(ProcessExited(now, _exit_cause(cause), exit_code, signal, detail, saved))

    def _not_started(self, error: LaunchError) -> None:
        trigger = self._state.stop_trigger
        self._state.not_launched()
        get_logger().warning("trial not started", trial=self.key.trial_id, reason=str(error))
        if trigger is StopTrigger.DROPPED:
            self._drop()
        elif trigger is StopTrigger.LOST or isinstance(error, StarterEndedError):
            loss = self._loss or LossReason(LossCause.AGENT_FAILED, detail=str(error))
            self._report(AttemptLost(loss))
        elif not self._silent and isinstance(error, UnfitTrialError):
            now = self._clock.now()
            self._report(ProcessExited(now, ExitCause.NOT_STARTED, None, 0, str(error)))
        else:
            self._report(AttemptLost(LossReason(LossCause.NOT_STARTED, detail=str(error))))

    def abandon(self, loss: LossReason) -> None:
        """Kill the process; report the attempt as lost unless its last report was made."""
        if self.process is not None:
            self._dependencies.processes.kill(self.process, self.token)
        self._state.not_launched()
        self._report(AttemptLost(loss))

    async def _clean_up(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self._stop_sampling is not None:
            self._stop_sampling()
        self._dependencies.sockets.dismiss(self.token)
        if self._checkpoints is not None:
            self._checkpoints.cancel()
        self._dependencies.outputs.end(self._directory)
        if self.output is not None:
            self.output.cut()
            if self.work.spec.outputs_travel:
                key = self.key
                self._dependencies.outputs.add(
                    FinishedTrial(key.experiment_id, key.trial_id, key.attempt, self._directory)
                )
        if self.gpu_indices:
            await self._dependencies.gpus.release(self.key.experiment_id, self.key.trial_id)

    # --- reports

    def _metric(self, metric: MetricReported) -> bool:
        """Report a metric, or hold it back until the start is reported; False: attempt is over.

        Raises:
            TypeError: the value has no JSON form.
            ValueError: the value is nested too deeply.
        """
        if self.process is not None:
            return self._report(metric)
        report_entry(self.key, self.claim_id, 0, metric)  # raises now rather than later
        self._early.append(metric)
        return True

    def _waits(self, wait: WaitReason) -> None:
        self.wait = wait
        self._report(AttemptWaits(wait))

    def _report(self, report: AttemptReport) -> bool:
        """Number and queue a report for the manager; return False after the last report."""
        if self._silent:
            return False
        entry = report_entry(self.key, self.claim_id, self._next_report, report)
        self._next_report += 1
        if self._dependencies.telemetry is not None:
            self._dependencies.telemetry.reported(self.work, report)
        if is_last(report):
            self._silent = True
            # In the spool before the journal records the end.
            self._dependencies.reporter.add(self.key.experiment_id, entry, self._arrived)
            self._dependencies.journal.append(Ended(self.claim_id))
        else:
            self._dependencies.reporter.add(self.key.experiment_id, entry)
            if isinstance(report, CheckpointSaved):
                # In the spool before the trial goes on: this is the progress that saves a retry.
                self._dependencies.reporter.flush()
        return True

    def _drop(self) -> None:
        if self._silent:
            return
        self._silent = True
        self._on_over(self)

    def _arrived(self) -> None:
        self._on_over(self)
