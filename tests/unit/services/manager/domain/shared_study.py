"""A shared study for tests of the domain: callers ask for trials, tell results, or fall silent."""

from __future__ import annotations

from svc_manager.domain import inputs
from svc_manager.domain.callers import Claim
from svc_manager.domain.experiment import Budget, ExperimentSettings
from svc_manager.domain.values import OptimizeMode
from tests.unit.services.manager.building import Lab, final

LEASE_MS = 60_000


def study_lab(*, retries: int = 0, budget: Budget | None = None, lookahead: bool = False) -> Lab:
    """Return an experiment whose trials callers run."""
    settings = ExperimentSettings(
        optimize_mode=OptimizeMode.MINIMIZE, lease_ms=LEASE_MS, max_trial_retries=retries
    )
    return Lab(budget or Budget(), settings, lookahead=lookahead)


def ask(lab: Lab, request_id: str, caller_id: str = "caller-1", parameters: bytes = b"") -> None:
    """Ask for a trial; it may come in a later round."""
    lab.command(inputs.AskTrial(request_id, caller_id, parameters))


def asked(lab: Lab, request_id: str, caller_id: str = "caller-1") -> Claim:
    """Ask for a trial, answer for the algorithm, and return the claim."""
    ask(lab, request_id, caller_id)
    if request_id not in lab.answers:
        lab.answer()
    answer = lab.answers[request_id]
    assert isinstance(answer, Claim)
    return answer


def tell(lab: Lab, claim: Claim, value: float | None) -> None:
    """Tell the result of a trial; None: it failed."""
    result = None if value is None else final(value)
    lab.command(inputs.TellTrial(claim.trial_id, claim.attempt, result, "broken"))


def pass_time(lab: Lab, duration_ms: int) -> None:
    """Let time pass, and a round see it."""
    lab.now_ms += duration_ms
    lab.notification(inputs.Tick())
