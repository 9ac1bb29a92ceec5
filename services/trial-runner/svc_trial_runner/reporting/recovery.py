"""Recovery of an earlier agent process's claims and reports, before the agent takes any task.

The remaining processes were killed before. Reports that had not arrived are sent again, in
order; a claim whose end is among them is acknowledged, any other attempt is reported lost.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from google.protobuf.message import DecodeError

from svc_common.errors import UnavailableError
from svc_common.experiment_events.causes import LossCause, LossReason
from svc_common.logs import get_logger
from svc_common.messaging.ports import TaskQueue
from svc_common.tasks import TaskOwner
from svc_trial_runner.converters import read_entry, report_entry
from svc_trial_runner.domain.claims import AttemptKey, Claim, Closed
from svc_trial_runner.domain.reports import AttemptLost
from svc_trial_runner.ports import ClaimJournal, ReportSpool, SpooledReport
from svc_trial_runner.reporting.reporter import Reporter


class Recovery:
    """Finisher of an earlier agent process's claims and reports at the start.

    Args:
        journal: claims of the predecessor.
        spool: reports of the predecessor.
        reporter: sends reports.
        queue: acknowledges tasks.
        tasks: owner of the background work after `settle`.
    """

    def __init__(
        self,
        journal: ClaimJournal,
        spool: ReportSpool,
        reporter: Reporter,
        queue: TaskQueue,
        tasks: TaskOwner,
    ) -> None:
        self._journal = journal
        self._spool = spool
        self._reporter = reporter
        self._queue = queue
        self._tasks = tasks

    def settle(self) -> list[AttemptKey]:
        """Resend an earlier agent's reports, report its other claims lost; return its attempts.

        Returns:
            The attempts that must not run here again.
        """
        claims = dict(self._journal.state.claims)
        if claims:
            get_logger().warning("predecessor left claims", claims=len(claims))
        self._journal.forget_servers()
        left = read_inherited(self._spool.inherited())
        for spooled in left.unarrived:
            claim = claims.get(spooled.claim_id)
            on_arrived = partial(self._close, claim) if claim and spooled.last else None
            self._reporter.add(spooled.experiment_id, spooled.entry, on_arrived)
        for claim in claims.values():
            if claim.claim_id not in left.ends_unarrived:
                self._settle_without_end(claim, left)
        self._reporter.flush()
        self._spool.discard_inherited()
        return [claim.key for claim in claims.values()]

    def _settle_without_end(self, claim: Claim, left: "InheritedReports") -> None:
        # An end in the journal without a known report means that the disk was full.
        known = claim.claim_id in left.ends_arrived or claim.next_sequence > 0
        if claim.ended and known:
            self._close(claim)  # only the acknowledgement of the task is missing
            return
        sequence = max(claim.next_sequence, left.next_sequences.get(claim.claim_id, 0))
        lost = AttemptLost(LossReason(LossCause.AGENT_RESTARTED))
        entry = report_entry(claim.key, claim.claim_id, sequence, lost)
        self._reporter.add(claim.key.experiment_id, entry, partial(self._close, claim))

    def _close(self, claim: Claim) -> None:
        self._tasks.start(self._acknowledge(claim), f"acknowledge {claim.key.trial_id}")

    async def _acknowledge(self, claim: Claim) -> None:
        try:
            await self._queue.ack(claim.ack_subject)
        except UnavailableError:
            return  # the bus was closed: the next agent finds the claim in the journal
        self._journal.append(Closed(claim.claim_id))


@dataclass(frozen=True, slots=True)
class UnsentReport:
    """Report of the previous agent process that has not been acknowledged."""

    experiment_id: str
    claim_id: str
    entry: bytes
    last: bool
    """True if it is the last report of its attempt."""


@dataclass(slots=True)
class InheritedReports:
    """Reports that an earlier process left: those to resend, ended claims, next numbers."""

    unarrived: list[UnsentReport] = field(default_factory=list)
    ends_arrived: set[str] = field(default_factory=set)
    """Claims whose last report has arrived."""
    ends_unarrived: set[str] = field(default_factory=set)
    next_sequences: dict[str, int] = field(default_factory=dict)
    """By claim: the number after its last report in the spool."""


def read_inherited(reports: Iterable[SpooledReport]) -> InheritedReports:
    """Sort a predecessor's spooled reports: unacknowledged ones to resend, claims that ended."""
    left = InheritedReports()
    for spooled in reports:
        try:
            report = read_entry(spooled.entry)
        except (DecodeError, ValueError) as error:
            # Its trial is reported lost, like one without a last report.
            get_logger().error("damaged report dropped", error=str(error))
            continue
        claim_id = report.claim_id
        last = report.WhichOneof("kind") in {"exited", "lost"}
        left.next_sequences[claim_id] = report.sequence + 1
        if last:
            (left.ends_arrived if spooled.acknowledged else left.ends_unarrived).add(claim_id)
        if not spooled.acknowledged:
            left.unarrived.append(
                UnsentReport(spooled.experiment_id, claim_id, spooled.entry, last)
            )
    return left
