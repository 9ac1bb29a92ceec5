"""Explanations of waiting trials: one test per reason."""

from dataclasses import replace

from svc_common.experiment_events.causes import (
    GpuUser,
    LossCause,
    LossReason,
    WaitCause,
    WaitReason,
)
from svc_manager.domain import events, inputs
from svc_manager.domain.experiment import Budget, ExperimentSettings
from svc_manager.domain.explain import explain_next, explain_trial
from svc_manager.domain.explain_waits import explain_waiting
from svc_manager.domain.explanation import (
    AgentFacts,
    Explanation,
    ExplanationContext,
    PoolFacts,
    Reason,
    ReasonKind,
    TrialOutcome,
)
from svc_manager.domain.failed_starts import HOLD_AFTER, LONGEST_DELAY_MS
from svc_manager.domain.reports import Lost, Waits
from svc_manager.domain.trial import Trial
from svc_manager.domain.values import OptimizeMode
from tests.unit.services.manager.building import Lab, exited, waits_for_gpus
from tests.unit.services.manager.domain.shared_study import LEASE_MS, asked, pass_time, study_lab

R1 = AgentFacts("r1", "local", 1.0, silent=False, draining=False, held_count=0)
AGENT_STOPPED = LossReason(LossCause.AGENT_STOPPED)
NO_AGENTS: tuple[AgentFacts, ...] = ()
WITHOUT_A_REMEDY = (
    "about to start it",
    "with 0 trials in hand",
    "when it has more results",
    "as soon as a slot is free",
)
"""Parts of reasons that need nothing."""


def why(lab: Lab, trial: Trial, *agents: AgentFacts, bus: str = "") -> Explanation:
    return explain_trial(lab.experiment, trial, ExplanationContext(lab.now_ms + 5_000, agents, bus))


def first(explanation: Explanation) -> tuple[ReasonKind, str]:
    assert explanation.outcome is TrialOutcome.WAITS
    reason = explanation.reasons[0]
    assert reason.text in explanation.summary
    assert reason.remedy or any(text in reason.text for text in WITHOUT_A_REMEDY)
    return reason.kind, reason.text


def test_without_an_agent_of_its_pool_a_trial_waits_for_one() -> None:
    lab = Lab()
    trial = lab.waiting()

    kind, text = first(why(lab, trial, replace(R1, pool="gpu")))

    assert kind is ReasonKind.POOL
    assert text == "no agent of pool 'local' is connected; connected are agents of 'gpu'"
    assert "--pool local" in why(lab, trial).reasons[0].remedy


def test_a_pool_whose_agents_have_fallen_silent_counts_as_empty() -> None:
    lab = Lab()

    kind, _ = first(why(lab, lab.waiting(), replace(R1, silent=True)))

    assert kind is ReasonKind.POOL


def test_draining_agents_are_named() -> None:
    lab = Lab()

    kind, text = first(why(lab, lab.waiting(), replace(R1, draining=True)))

    assert (kind, text) == (
        ReasonKind.AGENT,
        "1 agent of pool 'local' takes no more trials: draining",
    )


def test_an_unclaimed_task_waits_for_a_slot() -> None:
    lab = Lab()

    kind, text = first(why(lab, lab.waiting(), replace(R1, held_count=4)))

    assert kind is ReasonKind.SLOT
    assert text.endswith("1 agent there, with 4 trials in hand")


def test_a_slot_has_a_remedy_while_agents_hold_trials_only() -> None:
    lab = Lab()
    trial = lab.waiting()

    full, idle = (why(lab, trial, replace(R1, held_count=held)).reasons[0] for held in (4, 0))

    assert "NNI_RUNNER_SLOTS" in full.remedy
    assert idle.remedy == ""


def test_what_an_agent_says_about_gpus_is_passed_on() -> None:
    lab = Lab()
    trial = lab.waiting()
    users = (GpuUser(0, trial_ids=("aB3dE",)),)
    lab.report(trial, 0, Waits(WaitReason(WaitCause.GPU_IN_USE, gpu_count=1, users=users)))

    kind, text = first(why(lab, trial, R1))

    assert (kind, text) == (
        ReasonKind.GPU,
        "agent r1 has it: waiting for 1 GPU: 0 in use by trial aB3dE",
    )


def test_an_agent_that_waits_for_a_blob_is_named() -> None:
    lab = Lab()

    wait = WaitReason(WaitCause.BLOB, object="its code and parameters")

    kind, text = first(why(lab, lab.waiting(), replace(R1, holds=True, wait=wait)))

    assert (kind, text) == (ReasonKind.OBJECT, "agent r1 waits for its code and parameters")


def test_an_agent_that_has_just_taken_it_needs_nothing() -> None:
    lab = Lab()

    explanation = why(lab, lab.waiting(), replace(R1, holds=True))

    assert first(explanation)[0] is ReasonKind.AGENT
    assert explanation.reasons[0].remedy == ""


def test_a_silent_agent_that_holds_it_is_named() -> None:
    lab = Lab()
    trial = lab.waiting()
    lab.report(trial, 0, waits_for_gpus())

    kind, text = first(why(lab, trial, replace(R1, silent=True, silent_s=33.0)))

    assert (kind, text) == (ReasonKind.AGENT, "its agent r1 has been silent for 33 s")


def test_without_the_bus_nothing_is_given_out() -> None:
    lab = Lab()

    kind, text = first(why(lab, lab.waiting(), R1, bus="the bus is out of room"))

    assert (kind, text) == (ReasonKind.BUS, "no task can be published: the bus is out of room")


def test_a_lost_attempt_is_explained_beside_the_current_delay() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, Lost(AGENT_STOPPED))

    explanation = why(lab, trial)

    assert [reason.kind for reason in explanation.reasons] == [ReasonKind.POOL, ReasonKind.LOST]
    assert explanation.summary.startswith("attempt 2 of trial 00000 waits")
    assert [(lost.attempt, lost.runner_id, lost.loss) for lost in explanation.lost_attempts] == [
        (1, "r1", AGENT_STOPPED)
    ]


def test_a_trial_of_a_shared_study_waits_for_an_ask() -> None:
    lab = study_lab(retries=1)
    claim = asked(lab, "ask-1")
    pass_time(lab, LEASE_MS)

    explanation = why(lab, lab.experiment.trials[claim.trial_id])

    [reason] = [one for one in explanation.reasons if one.kind is ReasonKind.SLOT]
    assert first(explanation)[0] is ReasonKind.SLOT
    assert "no caller has asked" in reason.text
    assert "nni.experiment.SharedStudy" in reason.remedy


def test_first_attempt_is_explained_without_its_number_and_with_its_age() -> None:
    lab = Lab()
    trial = lab.waiting()

    summary = why(lab, trial, R1).summary

    assert summary.startswith("trial 00000 waits, for 5 s since the trial was made: ")


def test_last_of_several_lost_attempts_is_named() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, Lost(AGENT_STOPPED))
    lab.running(claim="c2")
    lab.report(trial, 1, Lost(AGENT_STOPPED), claim="c2")

    assert why(lab, trial).reasons[-1].text.startswith("attempt 2 was lost: ")


def test_agent_that_holds_the_trial_is_named_before_the_one_of_the_log() -> None:
    lab = Lab()
    trial = lab.waiting()
    lab.report(trial, 0, Waits(WaitReason(WaitCause.GPU_IN_USE, gpu_count=1)))

    _, text = first(why(lab, trial, R1, replace(R1, runner_id="r2", holds=True)))

    assert text.startswith("agent r2 has it")


def test_a_retried_command_is_explained_as_failed() -> None:
    settings = ExperimentSettings(optimize_mode=OptimizeMode.MINIMIZE, retry_failed_trials=1)
    lab = Lab(settings=settings)
    trial = lab.running()
    lab.report(trial, 1, exited(3, detail="oh no"))

    explanation = why(lab, trial)

    assert explanation.reasons[1].text == "attempt 1 failed and is run again: exit code 3: oh no"


# --- the next trial


def next_reasons(lab: Lab, bus: str = "") -> list[tuple[ReasonKind, str]]:
    explanation = explain_next(
        lab.experiment, ExplanationContext(lab.now_ms + 5_000, NO_AGENTS, bus)
    )
    assert (explanation.outcome, explanation.trial_id) == (TrialOutcome.NOT_CREATED, "")
    assert explanation.reasons[0].text in explanation.summary
    for reason in explanation.reasons:
        assert reason.remedy or any(text in reason.text for text in WITHOUT_A_REMEDY)
    return [(reason.kind, reason.text) for reason in explanation.reasons]


def test_the_next_trial_waits_for_an_algorithm_that_starts() -> None:
    kind, text = next_reasons(Lab(started=False))[0]

    assert kind is ReasonKind.ALGORITHM
    assert "has not started" in text


def test_the_next_trial_waits_for_an_answer_of_the_algorithm() -> None:
    lab = Lab()
    lab.notification(
        events.AlgorithmFailed("receive_trial_result", "Traceback\nKeyError: 'x'\n", (1, 0), True)
    )

    kind, text = next_reasons(lab)[0]

    assert kind is ReasonKind.ALGORITHM
    assert "asked for 2 sets of parameters" in text
    assert "KeyError: 'x'" in text


def test_the_next_trial_waits_for_results_that_the_algorithm_wants() -> None:
    lab = Lab()
    lab.answer(deferred=1)

    assert "when it has more results" in next_reasons(lab)[0][1]


def test_the_next_trial_waits_for_a_slot() -> None:
    lab = Lab(Budget(trial_concurrency=1))
    lab.running()

    kind, text = next_reasons(lab)[0]

    assert kind is ReasonKind.SLOT
    assert text == "1 trial live at once, and trialConcurrency is 1"


def test_a_used_up_trial_number_is_the_first_reason() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_trial_number=1))
    lab.running()

    assert next_reasons(lab)[0] == (
        ReasonKind.BUDGET,
        "all 1 trials of maxTrialNumber are made",
    )


def test_a_passed_duration_is_a_reason() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_duration_ms=10))
    lab.running()

    assert next_reasons(lab)[0] == (ReasonKind.BUDGET, "maxExperimentDuration has passed")


def test_an_exhausted_algorithm_is_a_reason() -> None:
    lab = Lab(Budget(trial_concurrency=1))
    lab.answer(exhausted=True)

    assert (ReasonKind.ALGORITHM, "the algorithm has no more parameters") in next_reasons(lab)


def test_an_experiment_that_is_over_makes_no_trials() -> None:
    stopped, broken = Lab(), Lab()
    stopped.command(inputs.Stop())
    broken.notification(inputs.AlgorithmGaveUp(1, "Traceback\nValueError: no such tuner"))

    assert next_reasons(stopped)[0] == (ReasonKind.EXPERIMENT, "the experiment is STOPPED")
    assert next_reasons(broken)[0][1] == "the experiment is in ERROR: ValueError: no such tuner"


def failed_call(error: str, sequence: int) -> events.AlgorithmFailed:
    traceback = f"Traceback\n  in f\n{error}\n"
    return events.AlgorithmFailed("receive_trial_result", traceback, (sequence, 0), True)


def test_last_line_of_the_last_error_is_named() -> None:
    lab = Lab()
    lab.notification(failed_call("KeyError: 'x'", 1))
    lab.notification(failed_call("KeyError: 'y'", 2))
    asked_text = next_reasons(lab)[0][1]

    lab.notification(inputs.AlgorithmGaveUp(1, "Traceback\n  in g\nValueError: z\n"))

    assert asked_text.endswith(": KeyError: 'y')")
    assert next_reasons(lab)[0][1] == "the experiment is in ERROR: ValueError: z"


def test_last_line_of_the_error_before_a_resume_is_named() -> None:
    lab = Lab()
    lab.notification(inputs.AlgorithmGaveUp(1, "Traceback\n  in g\nValueError: z\n"))
    lab.command(inputs.Stop())
    lab.command(inputs.Resume(0, "", ""))

    assert next_reasons(lab)[0] == (
        ReasonKind.ALGORITHM,
        "the dispatcher has not started the algorithm yet (its last error: ValueError: z)",
    )


def test_without_the_bus_no_trial_is_made() -> None:
    assert next_reasons(Lab(), "it cannot be reached")[0] == (
        ReasonKind.BUS,
        "it cannot be reached",
    )


def failing(failures: int) -> Lab:
    """Return an experiment of which the first starts fail."""
    lab = Lab()
    for _ in range(failures):
        lab.now_ms += LONGEST_DELAY_MS
        lab.notification(inputs.Tick())
        loss = LossReason(LossCause.NOT_STARTED, detail="No space left on device")
        lab.report(lab.waiting(), 0, Lost(loss))
    return lab


def test_a_trial_that_could_not_be_started_waits_for_its_environment() -> None:
    lab = failing(1)

    explanation = why(lab, lab.waiting(), R1)

    assert first(explanation) == (
        ReasonKind.NOT_STARTED,
        "waiting for its environment (start failed once): No space left on device",
    )
    assert "goes on by itself" in explanation.reasons[0].remedy


def test_the_next_trial_waits_while_the_experiment_holds() -> None:
    lab = failing(HOLD_AFTER)

    explanation = explain_next(lab.experiment, ExplanationContext(lab.now_ms, (R1,)))

    assert explanation.reasons[0].kind is ReasonKind.NOT_STARTED
    assert "5 starts of trials in a row have failed" in explanation.summary


def elsewhere(facts: PoolFacts | None, *agents: AgentFacts) -> list[Reason]:
    """Return the reasons why a trial of a pool that platforms feed waits."""
    lab = Lab(settings=ExperimentSettings(pool="exp-a", optimize_mode=OptimizeMode.MINIMIZE))
    context = ExplanationContext(lab.now_ms, agents, pool=facts)
    return list(explain_trial(lab.experiment, lab.waiting(), context).reasons)


def test_pool_that_does_not_grow_has_the_words_of_its_platform_and_the_remedy() -> None:
    full = replace(R1, pool="exp-a", held_count=4)

    reasons = elsewhere(PoolFacts("login refused", "give a password"), full)

    assert reasons[0] == Reason(
        ReasonKind.POOL, "pool 'exp-a' does not grow: login refused", "give a password"
    )
    assert reasons[1].kind is ReasonKind.SLOT


def test_agents_that_are_being_started_are_named_with_their_reason() -> None:
    reasons = elsewhere(PoolFacts(coming_count=2, coming_reason="Resources"))

    assert reasons[0].text == "2 agents of pool 'exp-a' are being started: Resources"
    assert "nnictl runner list" in reasons[0].remedy
    (one, *_) = elsewhere(PoolFacts(coming_count=1))
    assert one.text == "1 agent of pool 'exp-a' is being started"


def test_pool_that_the_fleet_is_silent_on_points_to_its_log() -> None:
    reasons = elsewhere(None)

    assert reasons[0].text == "no agent of pool 'exp-a' is connected"
    assert "fleet" in reasons[0].remedy


def test_next_trial_waits_for_trials_that_have_no_agent_and_the_remedy_is_theirs() -> None:
    lab = Lab(
        Budget(trial_concurrency=1),
        settings=ExperimentSettings(pool="gpus", optimize_mode=OptimizeMode.MINIMIZE),
    )
    lab.waiting()
    facts = PoolFacts("the pool is drained", "nnictl pool drain gpus --undo")
    context = ExplanationContext(lab.now_ms, NO_AGENTS, pool=facts)

    reasons = explain_next(lab.experiment, context).reasons

    assert reasons[0] == Reason(
        ReasonKind.POOL,
        "1 trial of the live ones waits for an agent: pool 'gpus' does not grow: "
        "the pool is drained",
        "nnictl pool drain gpus --undo",
    )
    assert all("nothing is needed" not in one.remedy for one in reasons)


def test_trials_are_run_by_agents_unless_callers_are_named() -> None:
    lab = Lab()

    explanation = explain_waiting(lab.waiting(), ExplanationContext(lab.now_ms, (R1,)))

    assert "no caller" not in explanation.summary


def test_agent_of_the_log_is_named_though_it_is_not_known() -> None:
    lab = Lab()
    trial = lab.waiting()
    lab.report(trial, 0, waits_for_gpus())

    kind, text = first(why(lab, trial))

    assert (kind, text) == (ReasonKind.GPU, "agent r1 has it: waiting for 1 GPU")


def test_shared_study_makes_its_next_trial_when_a_caller_asks() -> None:
    assert next_reasons(study_lab())[0][0] is ReasonKind.SLOT
