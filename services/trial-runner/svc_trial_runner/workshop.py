"""What every attempt works with, in one hand."""

from dataclasses import dataclass

from svc_common.clock import Clock
from svc_trial_runner.allotments import GpuDesk
from svc_trial_runner.plans import Plans
from svc_trial_runner.ports import ClaimJournal, Processes, TrialFolders, TrialSockets, Values
from svc_trial_runner.reporting import Reporter


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
