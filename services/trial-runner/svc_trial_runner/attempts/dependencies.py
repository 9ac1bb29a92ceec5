"""What every attempt works with, in one hand."""

from dataclasses import dataclass

from svc_common.clock import Clock
from svc_trial_runner.attempts.checkpoints import Checkpoints
from svc_trial_runner.attempts.gpu_allocation import GpuDesk
from svc_trial_runner.attempts.launch_plans import Plans
from svc_trial_runner.attempts.output_stream import LiveOutput
from svc_trial_runner.attempts.output_uploads import OutputUploads
from svc_trial_runner.ports import ClaimJournal, Processes, TrialFolders, TrialSockets, Values
from svc_trial_runner.reporting.reporter import Reporter
from svc_trial_runner.telemetry import Witness


@dataclass(frozen=True, slots=True)
class Workshop:
    """Ports and desks that the attempts of one agent share."""

    clock: Clock
    plans: Plans
    values: Values
    gpus: GpuDesk
    folders: TrialFolders
    sockets: TrialSockets
    processes: Processes
    journal: ClaimJournal
    reporter: Reporter
    checkpoints: Checkpoints
    outputs: OutputUploads
    witness: Witness | None = None
    """Counts and traces; None: nobody looks."""
    live: LiveOutput | None = None
    """Sends output to those who watch; None: they read the files, which are on this machine."""
    waiting_notice_after_s: float = 3.0
    """How long bytes may travel before a trial says that it waits for them, in seconds."""
