"""Explanations of waiting.

Of a trial that is not started, and of the next trial that is not created.
"""

from collections.abc import Iterator

from nni_wire.pools import LOCAL_POOL
from svc_common.experiment_events.cause_text import awaited_text, loss_text, wait_text
from svc_common.experiment_events.causes import WaitCause
from svc_manager.domain.budget import time_left_ms, trials_left
from svc_manager.domain.experiment import CLOSED_STATES, ExperimentState
from svc_manager.domain.explanation import (
    AgentFacts,
    Explanation,
    ExplanationContext,
    PoolFacts,
    Reason,
    ReasonKind,
    TrialOutcome,
    ago,
    count,
)
from svc_manager.domain.failed_starts import holds
from svc_manager.domain.scheduling import free_slots
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial, TrialState
from svc_manager.domain.waiting import hold_text

_START_AN_AGENT = (
    "start one: nnictl up on this machine, or python -m svc_trial_runner --pool {pool}"
)
_LOOK_AT_AGENTS = "see them with: nnictl runner list"
_LOOK_AT_BUS = "see nats.log in the folder of the logs; nnictl doctor looks at the bus"
_MEND_ENVIRONMENT = "mend it: free space, restore the folder; then it goes on by itself"
_LOOK_AT_BYTES = "look at the byte store with: nnictl doctor"


def explain_waiting(
    trial: Trial, context: ExplanationContext, *, has_callers: bool = False
) -> Explanation:
    """Explain why a WAITING trial has not started: time since its creation, and reasons in order.

    Args:
        trial: the trial.
        context: facts that are not in the log.
        has_callers: whether callers run the trials of its experiment, instead of agents.
    """
    since = ago(context.now_ms - trial.created_at_ms)
    reasons = tuple(_waiting_reasons(trial, context))
    if has_callers:
        text = "no caller has asked for a trial since then"
        reasons = (Reason(ReasonKind.SLOT, text, "call ask of nni.experiment.SharedStudy"),)
    attempt = f"attempt {trial.attempt} of " if trial.attempt > 1 else ""
    return Explanation(
        trial.id,
        trial.state,
        TrialOutcome.WAITS,
        f"{attempt}trial {trial.id} waits, for {since} since the trial was made: {reasons[0].text}",
        reasons,
        trial.lost_attempts,
    )


def _waiting_reasons(trial: Trial, context: ExplanationContext) -> Iterator[Reason]:
    if context.bus_trouble:
        yield Reason(
            ReasonKind.BUS, f"no task can be published: {context.bus_trouble}", _LOOK_AT_BUS
        )
        return
    if trial.wait is not None and trial.wait.cause is WaitCause.ENVIRONMENT and not trial.claim_id:
        yield Reason(ReasonKind.NOT_STARTED, wait_text(trial.wait), _MEND_ENVIRONMENT)
        return
    holder = next((agent for agent in context.agents if agent.holds), None)
    if holder is None and trial.runner_id:
        known = (agent for agent in context.agents if agent.runner_id == trial.runner_id)
        holder = next(known, None)
    if trial.claim_id or holder is not None:
        yield _agent_reason(trial, holder)
    else:
        yield from _unclaimed_reasons(trial, context)
    if trial.lost_attempts:
        last = trial.lost_attempts[-1]
        what = "failed and is run again" if last.command_failed else "was lost"
        yield Reason(ReasonKind.LOST, f"attempt {last.attempt} {what}: {loss_text(last.loss)}")


def _agent_reason(trial: Trial, holder: AgentFacts | None) -> Reason:
    if holder is not None and holder.silent:
        return Reason(
            ReasonKind.AGENT,
            f"its agent {holder.runner_id} has been silent for {ago(holder.silent_s * 1000)}",
            "nothing is needed: another agent gets it when that one is given up",
        )
    runner_id = holder.runner_id if holder is not None else trial.runner_id
    wait = (holder.wait if holder is not None else None) or trial.wait
    if wait is None:
        return Reason(ReasonKind.AGENT, f"agent {runner_id} has it and is about to start it")
    match wait.cause:
        case WaitCause.GPU_IN_USE | WaitCause.GPU_MISSING:
            return Reason(
                ReasonKind.GPU,
                f"agent {runner_id} has it: {wait_text(wait)}",
                "free a GPU, lower trialGpuNumber, or let trials share one (maxTrialNumberPerGpu)",
            )
        case _:
            awaited = awaited_text(wait)
            return Reason(
                ReasonKind.OBJECT, f"agent {runner_id} waits for {awaited}", _LOOK_AT_BYTES
            )


def _unclaimed_reasons(trial: Trial, context: ExplanationContext) -> Iterator[Reason]:
    yield from _platform_reasons(trial.pool, context.pool)
    of_pool = [agent for agent in context.agents if agent.pool == trial.pool]
    connected = [agent for agent in of_pool if not agent.silent]
    taking = [agent for agent in connected if not agent.draining]
    if taking:
        held = sum(agent.held_count for agent in taking)
        yield Reason(
            ReasonKind.SLOT,
            f"no agent of pool {trial.pool!r} has taken it yet: "
            f"{count(len(taking), 'agent')} there, with {count(held, 'trial')} in hand",
            "wait for a slot, raise NNI_RUNNER_SLOTS, or start another agent" if held else "",
        )
    elif connected:
        yield Reason(
            ReasonKind.AGENT,
            f"{count(len(connected), 'agent')} of pool {trial.pool!r} "
            f"{'takes' if len(connected) == 1 else 'take'} no more trials: draining",
            _START_AN_AGENT.format(pool=trial.pool),
        )
    else:
        others = sorted({agent.pool for agent in context.agents if not agent.silent} - {trial.pool})
        seen = f"; connected are agents of {', '.join(map(repr, others))}" if others else ""
        yield Reason(
            ReasonKind.POOL,
            f"no agent of pool {trial.pool!r} is connected{seen}",
            _remedy_of_no_agent(trial.pool, context.pool),
        )


def _platform_reasons(pool: str, facts: PoolFacts | None) -> Iterator[Reason]:
    """Yield at most one reason: why platforms start no agent, or how many they are starting."""
    if facts is None:
        return
    if facts.reason:
        yield Reason(ReasonKind.POOL, f"pool {pool!r} does not grow: {facts.reason}", facts.remedy)
    elif facts.coming_count:
        reason = f": {facts.coming_reason}" if facts.coming_reason else ""
        verb = "is" if facts.coming_count == 1 else "are"
        yield Reason(
            ReasonKind.POOL,
            f"{count(facts.coming_count, 'agent')} of pool {pool!r} {verb} being started{reason}",
            _LOOK_AT_AGENTS,
        )


def _remedy_of_no_agent(pool: str, facts: PoolFacts | None) -> str:
    if pool == LOCAL_POOL:
        return _START_AN_AGENT.format(pool=pool)
    if facts is None:
        return "the fleet has not said anything of it: see its log, and nnictl doctor"
    return _LOOK_AT_AGENTS


def explain_next(experiment: Experiment, context: ExplanationContext) -> Explanation:
    """Return why the experiment's next trial is not created yet, with the reasons in order."""
    reasons = tuple(_next_trial_reasons(experiment, context))
    return Explanation(
        "",
        None,
        TrialOutcome.NOT_CREATED,
        f"the next trial of experiment {experiment.id} is not there yet: {reasons[0].text}",
        reasons,
    )


def _next_trial_reasons(experiment: Experiment, context: ExplanationContext) -> Iterator[Reason]:
    if context.bus_trouble:
        yield Reason(ReasonKind.BUS, context.bus_trouble, _LOOK_AT_BUS)
    state = _state_reason(experiment)
    if state is not None:
        yield state
        return
    yield from _budget_reasons(experiment, context)
    if holds(experiment):
        text = f"waiting for {hold_text(experiment)}"
        yield Reason(ReasonKind.NOT_STARTED, text, _MEND_ENVIRONMENT)
    if experiment.settings.has_callers:
        yield Reason(
            ReasonKind.SLOT,
            "the trials of a shared study are made when a caller asks for one",
            "call ask of nni.experiment.SharedStudy",
        )
    elif not free_slots(experiment):
        without_agent = _without_agent(experiment, context)
        yield from without_agent
        limit = experiment.budget.trial_concurrency
        needless = "" if without_agent else "nothing is needed; "
        yield Reason(
            ReasonKind.SLOT,
            f"{count(len(experiment.live), 'trial')} live at once, and trialConcurrency is {limit}",
            f"{needless}for more at once: nnictl update concurrency",
        )
    yield _algorithm_reason(experiment)


def _without_agent(experiment: Experiment, context: ExplanationContext) -> list[Reason]:
    """Return why live trials that no agent has taken wait; empty: every trial has an agent."""
    held = {agent.runner_id for agent in context.agents if not agent.silent}
    waiting = [
        trial
        for trial in experiment.live.values()
        if trial.state is TrialState.WAITING and not trial.claim_id and trial.runner_id not in held
    ]
    if not waiting:
        return []
    first, *others = _unclaimed_reasons(waiting[0], context)
    verb = "waits" if len(waiting) == 1 else "wait"
    text = f"{count(len(waiting), 'trial')} of the live ones {verb} for an agent: {first.text}"
    return [Reason(first.kind, text, first.remedy), *others]


def _state_reason(experiment: Experiment) -> Reason | None:
    state = experiment.state
    if state is ExperimentState.ERROR:
        why = experiment.errors[-1].strip().splitlines()[-1] if experiment.errors else "see its log"
        return Reason(
            ReasonKind.EXPERIMENT,
            f"the experiment is in ERROR: {why}",
            "mend the cause; then nnictl stop and nnictl resume",
        )
    if state in CLOSED_STATES or state is ExperimentState.STOPPING:
        return Reason(
            ReasonKind.EXPERIMENT,
            f"the experiment is {state.name}",
            f"nnictl resume {experiment.id}",
        )
    return None


def _budget_reasons(experiment: Experiment, context: ExplanationContext) -> Iterator[Reason]:
    if trials_left(experiment) == 0:
        yield Reason(
            ReasonKind.BUDGET,
            f"all {experiment.budget.max_trial_number} trials of maxTrialNumber are made",
            "for more: nnictl update trialnum",
        )
    if time_left_ms(experiment, context.now_ms) == 0:
        yield Reason(
            ReasonKind.BUDGET,
            "maxExperimentDuration has passed",
            "for more: nnictl update duration",
        )


def _algorithm_reason(experiment: Experiment) -> Reason:
    algorithm = experiment.algorithm
    errors = experiment.errors[-1].strip().splitlines()[-1:] if experiment.errors else []
    trouble = f" (its last error: {errors[0]})" if errors else ""
    look = "see dispatcher.log of the experiment, and nnictl doctor"
    if not algorithm.started:
        text = f"the dispatcher has not started the algorithm yet{trouble}"
        return Reason(ReasonKind.ALGORITHM, text, look)
    if algorithm.exhausted:
        return Reason(
            ReasonKind.ALGORITHM,
            "the algorithm has no more parameters",
            "give it a larger space (nnictl update searchspace), or end the experiment",
        )
    if algorithm.late_count:
        text = f"the algorithm gives the next parameters when it has more results{trouble}"
        return Reason(ReasonKind.ALGORITHM, text)
    if algorithm.outstanding:
        return Reason(
            ReasonKind.ALGORITHM,
            f"the algorithm is asked for {count(algorithm.outstanding, 'set')} of parameters "
            f"and has not answered yet{trouble}",
            look,
        )
    return Reason(ReasonKind.ALGORITHM, "the algorithm is asked as soon as a slot is free")
