"""What every attempt works with, in one hand."""

from dataclasses import dataclass

from svc_common.clock import Clock
from svc_trial_runner.attempts.checkpoints import Checkpoints
from svc_trial_runner.attempts.gpu_allocation import GpuAllocator
from svc_trial_runner.attempts.launch_plans import LaunchPlans
from svc_trial_runner.attempts.output_stream import OutputStreamer
from svc_trial_runner.attempts.output_uploads import OutputUploads
from svc_trial_runner.ports import ClaimJournal, LargeValues, Processes, TrialFolders, TrialSockets
from svc_trial_runner.reporting.reporter import Reporter
from svc_trial_runner.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class AttemptDependencies:
    """Ports and desks that the attempts of one agent share."""

    clock: Clock
    plans: LaunchPlans
    values: LargeValues
    gpus: GpuAllocator
    folders: TrialFolders
    sockets: TrialSockets
    processes: Processes
    journal: ClaimJournal
    reporter: Reporter
    checkpoints: Checkpoints
    outputs: OutputUploads
    telemetry: Telemetry | None = None
    """Counts and traces; None: nobody looks."""
    live: OutputStreamer | None = None
    """Sends output to those who watch; None: they read the files, which are on this machine."""
    waiting_notice_after_s: float = 3.0
    """How long bytes may travel before a trial says that it waits for them, in seconds."""
