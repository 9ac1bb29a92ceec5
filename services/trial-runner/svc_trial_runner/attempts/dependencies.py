"""Dependencies that all attempts share."""

from dataclasses import dataclass

from svc_common.clock import Clock
from svc_trial_runner.attempts.checkpoints import Checkpoints
from svc_trial_runner.attempts.gpu_allocation import GpuAllocator
from svc_trial_runner.attempts.launch_plans import LaunchPlans
from svc_trial_runner.attempts.output_stream import OutputStreamer
from svc_trial_runner.attempts.output_uploads import OutputUploads
from svc_trial_runner.attempts.process_reuse import ReusedProcesses
from svc_trial_runner.attempts.resource_sampling import ResourceSampler
from svc_trial_runner.attempts.trial_checkpoints import TrialCheckpoints
from svc_trial_runner.ports import ClaimJournal, LargeValues, TrialFolders, TrialSockets
from svc_trial_runner.reporting.reporter import Reporter
from svc_trial_runner.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class AttemptDependencies:
    """Clock, plans, GPUs, folders, sockets, processes and reporter that attempts share."""

    clock: Clock
    plans: LaunchPlans
    values: LargeValues
    gpus: GpuAllocator
    folders: TrialFolders
    sockets: TrialSockets
    processes: ReusedProcesses
    journal: ClaimJournal
    reporter: Reporter
    checkpoints: Checkpoints
    outputs: OutputUploads
    trial_checkpoints: TrialCheckpoints
    telemetry: Telemetry | None = None
    """None: no metrics and no traces."""
    live: OutputStreamer | None = None
    """Publishes the output of running trials; None: their files are read directly."""
    resources: ResourceSampler | None = None
    """Samples the use of running trials; None: nothing does."""
    platform: str = ""
    """Platform of this machine for its trials; empty: that of the task."""
    waiting_notice_after_s: float = 3.0
    """Time after which a transfer is reported as the reason why a trial waits, in seconds."""
    shutdown_notice_s: float = 0.5
    """Time for which the end of a trial by TERM waits for the stop of the agent, in seconds."""
    handled_signal_notice_s: float = 0.1
    """The same for a failure with another status, as of a trial that handles TERM; in seconds. A
    shutdown sends TERM to all processes within milliseconds, and failures should not wait."""
