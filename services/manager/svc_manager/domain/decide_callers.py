"""Decisions on the asks, results and leases of callers, which run the trials of a shared study.

The claim of an attempt is the request id of the ask that it answers, so a repeated ask gets the
same attempt. The first decision in the log wins: a result after the lapse of the lease is refused.
"""

from svc_common.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from svc_common.experiment_events.causes import EndCause, EndReason, LossCause, LossReason
from svc_manager.domain import events, inputs
from svc_manager.domain.budget import used_up
from svc_manager.domain.callers import Claim
from svc_manager.domain.decide_reports import lose_attempt
from svc_manager.domain.decision_round import Round
from svc_manager.domain.experiment import CLOSED_STATES, ExperimentState
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial, TrialState
from svc_manager.domain.values import Metric, ParameterSource

_NO_MORE_STATES = frozenset(
    {
        ExperimentState.NO_MORE_TRIAL,
        ExperimentState.TUNER_NO_MORE_TRIAL,
        ExperimentState.DONE,
    }
)
_SHOWN_CHARACTERS = 80


def ask_trial(round_: Round, ask: inputs.AskTrial) -> None:
    """Answer a repeated ask with its trial in `answers`; queue a new one for `answer_asks`.

    Raises:
        FailedPreconditionError: agents run the trials of this experiment.
    """
    experiment = round_.experiment
    _check_callers(experiment)
    trial_id = round_.callers.claims(experiment).get(ask.request_id, "")
    trial = experiment.trials.get(trial_id)
    if trial is not None and trial.claim_id == ask.request_id:
        round_.answers[ask.request_id] = Claim(trial.id, trial.attempt)
    else:
        round_.callers.asks[ask.request_id] = ask


def _check_callers(experiment: Experiment) -> None:
    if not experiment.settings.has_callers:
        raise FailedPreconditionError(
            f"experiment {experiment.id!r} is no shared study: agents run its trials",
            {"reason": "AGENTS"},
        )


def unanswered_count(round_: Round) -> int:
    """Return how many asks wait for parameters of the algorithm, less the unclaimed trials."""
    asks = sum(not ask.parameters for ask in round_.callers.asks.values())
    return max(0, asks - len(_unclaimed(round_.experiment)))


def _unclaimed(experiment: Experiment) -> list[Trial]:
    return [t for t in experiment.live.values() if t.state is TrialState.WAITING]


def answer_asks(round_: Round) -> None:
    """Start an unclaimed trial, or a new one with its parameters, for each ask, oldest first."""
    if not round_.callers.asks:
        return
    unclaimed = iter(_unclaimed(round_.experiment))
    for ask in list(round_.callers.asks.values()):
        trial = _given_trial(round_, ask) if ask.parameters else next(unclaimed, None)
        if trial is not None:
            _start(round_, trial, ask)


def _given_trial(round_: Round, ask: inputs.AskTrial) -> Trial | None:
    """Create and return a trial with the parameters of an ask; None: a budget is used up."""
    experiment = round_.experiment
    if used_up(experiment, round_.now_ms):
        return None
    parameter_id = experiment.next_parameter_id
    round_.emit(events.CustomTrialAdded("", parameter_id, ask.parameters))
    return round_.create_trial(parameter_id, ask.parameters, ParameterSource.CUSTOMIZED)


def _start(round_: Round, trial: Trial, ask: inputs.AskTrial) -> None:
    round_.emit(
        events.TrialStarted(
            trial.id, trial.attempt, ask.request_id, ask.caller_id, round_.now_ms, (), 0
        )
    )
    del round_.callers.asks[ask.request_id]
    round_.callers.claims(round_.experiment)[ask.request_id] = trial.id
    round_.answers[ask.request_id] = Claim(trial.id, trial.attempt)


def refuse_asks(round_: Round) -> None:
    """Refuse the pending asks for which no trial will come, by the state and the running trials.

    Where lost trials are asked again, an ask waits while another caller may lose one. A caller that
    runs a trial itself is refused: two that waited for each other would wait for ever.
    """
    experiment = round_.experiment
    if not round_.callers.asks:
        return
    refusal = _refusal(experiment)
    if refusal is None:
        return
    running = [t for t in experiment.live.values() if t.state is TrialState.RUNNING]
    holders = {trial.runner_id for trial in running}
    retried = experiment.state in _NO_MORE_STATES and any(
        trial.losses < experiment.settings.max_trial_retries and trial.asked_end is None
        for trial in running
    )
    for request_id, ask in list(round_.callers.asks.items()):
        if retried and not ask.parameters and ask.caller_id not in holders:
            continue
        round_.answers[request_id] = refusal
        del round_.callers.asks[request_id]


def _refusal(experiment: Experiment) -> FailedPreconditionError | None:
    """Return the error for asks of a closed, failed or finished experiment; None: another state."""
    state = experiment.state
    if state in CLOSED_STATES or state is ExperimentState.STOPPING:
        reason, text = "STOPPED", f"it is {state.name}; resume it first"
    elif state is ExperimentState.ERROR:
        last = experiment.errors[-1] if experiment.errors else "see its log"
        reason, text = "ERROR", f"its algorithm failed: {last}"
    elif state in _NO_MORE_STATES:
        reason, text = "NO_MORE_TRIAL", "it has no more trials"
    else:
        return None
    facts = {"reason": reason, "state": state.name}
    return FailedPreconditionError(f"study {experiment.id!r} gives no trial: {text}", facts)


def tell_trial(round_: Round, tell: inputs.TellTrial) -> None:
    """Record a caller's result and end the trial; skip a repetition; raise for another result.

    Raises:
        NotFoundError: the experiment has no such trial.
        FailedPreconditionError: the attempt is over for another reason, or was never asked for.
        InvalidArgumentError: another result was told before.
    """
    experiment = round_.experiment
    _check_callers(experiment)
    trial = experiment.trials.get(tell.trial_id)
    if trial is None:
        raise NotFoundError("trial", tell.trial_id)
    if trial.state is not TrialState.RUNNING or trial.attempt != tell.attempt:
        _check_repeated(trial, tell)
        return
    end = EndReason(EndCause.UNSPECIFIED, detail=_told_text(tell))
    state = TrialState.EARLY_STOPPED if tell.stopped else TrialState.FAILED
    if tell.result is not None:
        sequence = trial.report_sequence + 1
        round_.emit(
            events.MetricReported(
                trial.id, trial.attempt, trial.parameter_id, tell.result, sequence
            )
        )
        end, state = EndReason(EndCause.SUCCEEDED), TrialState.SUCCEEDED
    round_.emit(
        events.TrialEnded(
            trial.id,
            trial.attempt,
            state,
            None,
            max(round_.now_ms, trial.started_at_ms),
            end,
            trial.report_sequence + 1,
        )
    )
    if tell.sample:
        round_.emit(events.DataImported(f"tell-{trial.id}", tell.sample))


def _told_text(tell: inputs.TellTrial) -> str:
    text = "its caller stopped it early" if tell.stopped else "its caller reported a failure"
    return f"{text}: {tell.detail}" if tell.detail else text


def _check_repeated(trial: Trial, tell: inputs.TellTrial) -> None:
    """Raise unless the trial ended with just this result.

    Raises:
        FailedPreconditionError: the attempt is over for another reason, or was never asked for.
        InvalidArgumentError: another result was told before.
    """
    cause = None if trial.end is None else trial.end.cause
    told = cause in {EndCause.SUCCEEDED, EndCause.UNSPECIFIED}
    if not told or trial.attempt != tell.attempt:
        raise _over(trial, tell)
    if tell.result is None and trial.final is None:
        return
    if tell.result is not None and trial.final is not None and _equal(tell.result, trial.final):
        return
    raise InvalidArgumentError(
        "value",
        f"must be the one that was told before, {_shown(trial.final)}",
        _shown(tell.result),
        f"trial {trial.id} is over: its result cannot be changed",
    )


def _over(trial: Trial, tell: inputs.TellTrial) -> FailedPreconditionError:
    """Return the error about an attempt that was lost or stopped, or that no caller runs."""
    loss = None if trial.end is None else trial.end.loss
    if tell.attempt < trial.attempt or (loss and loss.cause is LossCause.LEASE_LAPSED):
        reason, text = "LEASE_LAPSED", "its lease has lapsed"
    elif trial.live:
        reason, text = "NOT_ASKED", "no caller has asked for this attempt"
    else:
        reason, text = "STOPPED", f"it is {trial.state.name}"
    return FailedPreconditionError(
        f"attempt {tell.attempt} of trial {trial.id} takes no result: {text}",
        {"reason": reason, "state": trial.state.name},
    )


def _equal(one: Metric, other: Metric) -> bool:
    """Return whether two results are the same; 1 and 1.0 are."""
    return one.value == other.value or (one.numbers is not None and one.numbers == other.numbers)


def _shown(result: Metric | None) -> str:
    if result is None:
        return "a failure"
    numbers = result.numbers
    return "a large value" if numbers is None else str(numbers)[:_SHOWN_CHARACTERS]


def lose_lapsed(round_: Round) -> None:
    """Record attempts whose leases have lapsed as lost: their trials are retried, or fail."""
    experiment = round_.experiment
    for claim in round_.callers.take_lapsed(round_.now_ms):
        trial = experiment.trials[claim.trial_id]
        if trial.state is TrialState.RUNNING and trial.attempt == claim.attempt:
            loss = LossReason(
                LossCause.LEASE_LAPSED,
                silence_ms=experiment.settings.lease_ms,
                runner_id=trial.runner_id,
            )
            lose_attempt(round_, trial, loss)
