from __future__ import annotations

import pytest

from svc_common.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from svc_common.experiment_events.causes import EndCause, LossCause, LossReason
from svc_manager.domain import events, inputs
from svc_manager.domain.callers import Callers, Claim
from svc_manager.domain.decide_callers import unanswered_count
from svc_manager.domain.decision_round import Round
from svc_manager.domain.effects import WriteSummary, outstanding_effects
from svc_manager.domain.experiment import Budget, ExperimentState
from svc_manager.domain.explain import explain_next, explain_trial
from svc_manager.domain.explanation import ExplanationContext
from svc_manager.domain.reports import Started
from svc_manager.domain.scheduling import next_moment_ms
from svc_manager.domain.trial import TrialState
from svc_manager.domain.values import Metric, MetricType, Numbers, ParameterSource
from svc_manager.domain.waiting import waiting_for
from tests.unit.services.manager.building import Lab, encoded, generated
from tests.unit.services.manager.domain.shared_study import (
    LEASE_MS,
    ask,
    asked,
    pass_time,
    study_lab,
    tell,
)


def reason(lab: Lab, request_id: str) -> str:
    """Return why an ask of the last round was refused."""
    answer = lab.answers[request_id]
    assert isinstance(answer, FailedPreconditionError)
    return str(answer.facts["reason"])


def requests(lab: Lab) -> list[tuple[int, ...]]:
    return [event.parameter_ids for event in lab.last if isinstance(event, events.TrialsRequested)]


def test_parameters_are_requested_when_a_caller_asks_and_not_before() -> None:
    lab = study_lab()
    assert not any(isinstance(event, events.TrialsRequested) for _, event in lab.log)

    ask(lab, "ask-1")

    assert requests(lab) == [(0,)]
    assert lab.answers == {}


def test_asks_of_one_round_make_one_request() -> None:
    lab = study_lab()
    round_commands = [inputs.AskTrial(f"ask-{number}", "caller-1") for number in range(3)]

    lab.commands(*round_commands)

    assert requests(lab) == [(0, 1, 2)]


def test_the_answer_of_the_algorithm_starts_the_trial_for_the_caller() -> None:
    lab = study_lab()

    claim = asked(lab, "ask-1", "caller-7")

    trial = lab.experiment.trials[claim.trial_id]
    assert (trial.state, trial.claim_id, trial.runner_id) == (
        TrialState.RUNNING,
        "ask-1",
        "caller-7",
    )
    assert claim.attempt == 1


def test_the_oldest_ask_gets_the_first_parameters() -> None:
    lab = study_lab()
    ask(lab, "ask-1")
    ask(lab, "ask-2")
    request_id = next(iter(lab.experiment.algorithm.asked))

    lab.notification(generated(request_id, [0]))

    assert list(lab.answers) == ["ask-1"]


def test_a_repeated_ask_gets_the_same_trial_before_and_after_its_end() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")

    ask(lab, "ask-1")
    during = lab.answers
    tell(lab, claim, 1.0)
    ask(lab, "ask-1")

    assert during == lab.answers == {"ask-1": claim}
    assert len(lab.experiment.trials) == 1


def test_a_new_owner_of_the_log_knows_the_asks_that_were_answered() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")
    lab.callers = Callers()

    ask(lab, "ask-1")

    assert lab.answers == {"ask-1": claim}


def test_a_result_ends_the_trial_and_is_the_best() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")

    tell(lab, claim, 0.5)

    trial = lab.experiment.trials[claim.trial_id]
    assert trial.state is TrialState.SUCCEEDED
    assert lab.experiment.best_value == 0.5
    assert lab.experiment.state is ExperimentState.RUNNING


def test_a_result_and_the_end_of_its_trial_are_reports_in_sequence() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")

    tell(lab, claim, 0.5)

    reports = [
        event.report_sequence
        for event in lab.last
        if isinstance(event, events.MetricReported | events.TrialEnded)
    ]
    assert reports == [1, 2]


def test_a_failure_ends_the_trial_with_the_words_of_the_caller() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")

    tell(lab, claim, None)

    trial = lab.experiment.trials[claim.trial_id]
    assert trial.state is TrialState.FAILED
    assert trial.end is not None
    assert trial.end.detail == "its caller reported a failure: broken"


def test_a_trial_that_its_caller_stopped_has_not_failed() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")

    lab.command(inputs.TellTrial(claim.trial_id, 1, None, stopped=True))

    assert lab.experiment.trials[claim.trial_id].state is TrialState.EARLY_STOPPED


@pytest.mark.parametrize("value", [0.5, None])
def test_the_same_result_again_changes_nothing(value: float | None) -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")
    tell(lab, claim, value)

    tell(lab, claim, value)

    assert lab.last == []


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.75), (0.5, None), (None, 0.5)])
def test_another_result_is_an_error_that_names_both(
    first: float | None, second: float | None
) -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")
    tell(lab, claim, first)

    with pytest.raises(InvalidArgumentError) as caught:
        tell(lab, claim, second)

    for value in (first, second):
        assert ("a failure" if value is None else str(value)) in str(caught.value)


def test_a_result_of_an_unknown_trial_or_attempt_is_refused() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")

    with pytest.raises(NotFoundError):
        tell(lab, Claim("none", 1), 1.0)
    with pytest.raises(FailedPreconditionError) as caught:
        tell(lab, Claim(claim.trial_id, 2), 1.0)

    assert caught.value.facts["reason"] == "NOT_ASKED"


def test_a_lease_that_lapses_fails_the_trial_with_a_reason_of_its_own() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1", "caller-7")
    start_ms = lab.now_ms
    assert next_moment_ms(lab.experiment, lab.now_ms, lab.callers) == start_ms + LEASE_MS

    pass_time(lab, LEASE_MS - 1)
    assert lab.experiment.trials[claim.trial_id].state is TrialState.RUNNING
    pass_time(lab, 1)

    trial = lab.experiment.trials[claim.trial_id]
    loss = LossReason(LossCause.LEASE_LAPSED, silence_ms=LEASE_MS, runner_id="caller-7")
    assert trial.state is TrialState.FAILED
    assert trial.end is not None
    assert (trial.end.cause, trial.end.loss) == (EndCause.LOST, loss)


def test_a_result_after_the_lapse_is_refused() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")
    pass_time(lab, LEASE_MS)

    with pytest.raises(FailedPreconditionError, match="lease has lapsed") as caught:
        tell(lab, claim, 1.0)

    assert caught.value.facts["reason"] == "LEASE_LAPSED"


def test_a_result_in_the_round_of_the_lapse_counts() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")
    lab.now_ms += LEASE_MS

    tell(lab, claim, 1.0)

    assert lab.experiment.trials[claim.trial_id].state is TrialState.SUCCEEDED


def test_with_retries_a_lost_trial_is_the_next_that_is_asked() -> None:
    lab = study_lab(retries=1)
    lost = asked(lab, "ask-1")
    pass_time(lab, LEASE_MS)
    assert lab.experiment.trials[lost.trial_id].state is TrialState.WAITING

    ask(lab, "ask-2", "caller-2")

    assert lab.answers == {"ask-2": Claim(lost.trial_id, 2)}
    with pytest.raises(FailedPreconditionError, match="lease has lapsed"):
        tell(lab, lost, 1.0)
    pass_time(lab, LEASE_MS)
    assert lab.experiment.trials[lost.trial_id].state is TrialState.FAILED


def limited_lab(*, retries: int) -> tuple[Lab, Claim]:
    """Return a study whose only trial `caller-1` runs."""
    lab = study_lab(retries=retries, budget=Budget(max_trial_number=1))
    return lab, asked(lab, "ask-1", "caller-1")


def test_with_retries_a_caller_waits_for_the_last_trials_and_gets_a_lost_one() -> None:
    lab, lost = limited_lab(retries=1)

    ask(lab, "ask-2", "caller-2")
    assert lab.answers == {}
    pass_time(lab, LEASE_MS)

    assert lab.answers == {"ask-2": Claim(lost.trial_id, 2)}


def test_a_caller_that_waits_is_refused_when_the_last_trial_is_told() -> None:
    lab, claim = limited_lab(retries=1)
    ask(lab, "ask-2", "caller-2")

    tell(lab, claim, 1.0)

    assert reason(lab, "ask-2") == "NO_MORE_TRIAL"
    assert lab.experiment.state is ExperimentState.DONE


def test_a_caller_does_not_wait_for_a_trial_without_further_retries() -> None:
    lab, lost = limited_lab(retries=1)
    pass_time(lab, LEASE_MS)
    ask(lab, "ask-2", "caller-2")
    assert lab.answers == {"ask-2": Claim(lost.trial_id, 2)}

    ask(lab, "ask-3", "caller-3")

    assert reason(lab, "ask-3") == "NO_MORE_TRIAL"


def test_a_caller_that_runs_a_trial_and_given_parameters_do_not_wait_for_a_loss() -> None:
    lab, _ = limited_lab(retries=1)

    ask(lab, "ask-2", "caller-1")
    assert reason(lab, "ask-2") == "NO_MORE_TRIAL"
    ask(lab, "ask-3", "caller-2", encoded({"x": 9}))

    assert reason(lab, "ask-3") == "NO_MORE_TRIAL"


def test_a_stop_refuses_a_caller_that_waits_for_a_loss() -> None:
    lab, _ = limited_lab(retries=1)
    ask(lab, "ask-2", "caller-2")

    lab.command(inputs.Stop())

    assert reason(lab, "ask-2") == "STOPPED"


def test_given_parameters_become_a_trial_at_once_and_its_sample_is_imported() -> None:
    lab = study_lab()

    ask(lab, "ask-1", parameters=encoded({"x": 9}))

    claim = lab.answers["ask-1"]
    assert isinstance(claim, Claim)
    trial = lab.experiment.trials[claim.trial_id]
    assert (trial.source, trial.parameters) == (ParameterSource.CUSTOMIZED, encoded({"x": 9}))
    sample = encoded([{"parameter": {"x": 9}, "value": 1.0}])
    lab.command(inputs.TellTrial(trial.id, 1, None, sample=sample))
    assert lab.last[-1] == events.DataImported(f"tell-{trial.id}", sample)


def test_an_enqueued_configuration_is_asked_first() -> None:
    lab = study_lab()
    lab.command(inputs.AddTrial("add-1", encoded({"x": 9})))

    ask(lab, "ask-1")

    claim = lab.answers["ask-1"]
    assert isinstance(claim, Claim)
    assert lab.experiment.trials[claim.trial_id].parameters == encoded({"x": 9})


def test_when_the_algorithm_has_no_more_the_ask_is_refused() -> None:
    lab = study_lab()
    ask(lab, "ask-1")

    lab.answer(exhausted=True, count=0)

    assert reason(lab, "ask-1") == "NO_MORE_TRIAL"
    assert lab.experiment.state is ExperimentState.DONE
    ask(lab, "ask-2")
    assert reason(lab, "ask-2") == "NO_MORE_TRIAL"


def test_a_finished_study_takes_a_trial_of_a_user() -> None:
    lab = study_lab()
    ask(lab, "ask-1")
    lab.answer(exhausted=True, count=0)

    ask(lab, "ask-2", parameters=encoded({"x": 9}))

    claim = lab.answers["ask-2"]
    assert isinstance(claim, Claim)
    assert lab.experiment.state.name == "TUNER_NO_MORE_TRIAL"
    tell(lab, claim, 1.0)
    assert lab.experiment.state.name == "DONE"


def test_a_stop_ends_open_trials_and_asks_in_one_round() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")
    ask(lab, "ask-2")

    lab.command(inputs.Stop())

    assert lab.experiment.trials[claim.trial_id].state is TrialState.SYS_CANCELED
    assert lab.experiment.state is ExperimentState.STOPPED
    assert reason(lab, "ask-2") == "STOPPED"
    with pytest.raises(FailedPreconditionError) as caught:
        tell(lab, claim, 1.0)
    assert caught.value.facts["reason"] == "STOPPED"


def test_a_resumed_study_is_asked_again() -> None:
    lab = study_lab()
    tell(lab, asked(lab, "ask-1"), 1.0)
    lab.command(inputs.Stop())

    lab.command(inputs.Resume(0, "", ""))
    ask(lab, "ask-2")
    assert lab.answers == {}
    lab.notification(events.AlgorithmStarted(2, lookahead=False, assesses=False, provenance={}))
    lab.answer()

    assert isinstance(lab.answers["ask-2"], Claim)


def test_the_trial_number_ends_a_study() -> None:
    lab = study_lab(budget=Budget(max_trial_number=1))
    tell(lab, asked(lab, "ask-1"), 1.0)

    ask(lab, "ask-2")

    assert reason(lab, "ask-2") == "NO_MORE_TRIAL"


def test_no_agent_hears_of_the_trials_of_a_study() -> None:
    lab = study_lab(retries=1)
    first = asked(lab, "ask-1")
    effects = [*lab.effects]
    pass_time(lab, LEASE_MS)
    effects += [*lab.effects, *outstanding_effects(lab.experiment)]
    lab.command(inputs.KillTrial(first.trial_id))
    effects += lab.effects
    asked(lab, "ask-2")
    lab.command(inputs.Stop())
    effects += [effect for effect in lab.effects if not isinstance(effect, WriteSummary)]

    assert lab.experiment.state is ExperimentState.STOPPED
    assert effects == []


def test_reports_of_agents_about_a_study_are_ignored() -> None:
    lab = study_lab(retries=1)
    claim = asked(lab, "ask-1")
    trial = lab.experiment.trials[claim.trial_id]

    lab.report(trial, 1, Started(lab.now_ms), claim="ask-1", runner="caller-1")
    lab.notification(inputs.AgentSilent("caller-1"))
    lab.notification(inputs.AgentGone("caller-1", LossReason(LossCause.AGENT_STOPPED)))

    assert trial.state is TrialState.RUNNING


def test_an_experiment_of_agents_has_no_asks() -> None:
    lab = Lab()

    with pytest.raises(FailedPreconditionError, match="no shared study"):
        ask(lab, "ask-1")


def test_the_log_of_a_study_folds_to_the_same_state() -> None:
    lab = study_lab(retries=1)
    tell(lab, asked(lab, "ask-1"), 0.5)
    tell(lab, asked(lab, "ask-2"), None)
    asked(lab, "ask-3")
    pass_time(lab, LEASE_MS)

    assert lab.refolded() == lab.experiment


def test_the_page_says_what_a_study_waits_for_and_who_runs_its_trials() -> None:
    lab = study_lab(retries=1)
    context = ExplanationContext(lab.now_ms + 5_000, [])
    assert waiting_for(lab.experiment, 0) == "waiting for a caller to ask for a trial"
    assert "when a caller asks" in explain_next(lab.experiment, context).summary

    claim = asked(lab, "ask-1", "caller-7")
    trial = lab.experiment.trials[claim.trial_id]
    running = explain_trial(lab.experiment, trial, context).summary
    nothing = waiting_for(lab.experiment, 0)
    ask(lab, "ask-2")
    pass_time(lab, LEASE_MS)
    lost = explain_trial(lab.experiment, trial, context).summary

    assert running.endswith("on caller caller-7")
    assert nothing == ""
    assert lab.answers == {"ask-2": Claim(trial.id, 2)}
    assert "caller-1" in lost


def test_a_lost_trial_is_explained_by_its_caller() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1", "caller-7")
    pass_time(lab, LEASE_MS)
    trial = lab.experiment.trials[claim.trial_id]

    explanation = explain_trial(lab.experiment, trial, ExplanationContext(lab.now_ms, []))

    assert "its caller caller-7 did not renew its lease for 60 s" in explanation.summary
    assert "retry_lost=True" in explanation.reasons[0].remedy


def test_a_trial_that_its_caller_stopped_is_explained_by_its_words() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")
    lab.command(inputs.TellTrial(claim.trial_id, 1, None, "diverged", stopped=True))
    trial = lab.experiment.trials[claim.trial_id]

    explanation = explain_trial(lab.experiment, trial, ExplanationContext(lab.now_ms, []))

    assert explanation.reasons[0].text == "its caller stopped it early: diverged"


def test_asks_need_parameters_less_those_given_and_the_unclaimed_trials() -> None:
    lab = study_lab(retries=1)
    asked(lab, "ask-1")
    pass_time(lab, LEASE_MS)
    for number, parameters in enumerate([b"", b"", b"", encoded({"x": 1})]):
        lab.callers.asks[f"open-{number}"] = inputs.AskTrial(f"open-{number}", "c", parameters)
    round_ = Round(lab.experiment, lab.now_ms, lab.ids, lab.callers)

    assert unanswered_count(round_) == 2

    lab.callers.asks.clear()
    assert unanswered_count(round_) == 0


def test_given_parameters_of_two_asks_have_ids_of_their_own() -> None:
    lab = study_lab()

    for number in range(2):
        ask(lab, f"ask-{number}", parameters=encoded({"x": number}))

    first, second = lab.experiment.trials.values()
    assert first.parameter_id != second.parameter_id
    added = [event for _, event in lab.log if isinstance(event, events.CustomTrialAdded)]
    assert [event.parameter_id for event in added] == [first.parameter_id, second.parameter_id]


@pytest.mark.parametrize(
    ("errors", "text"), [([], "see its log"), (["first", "second", "last"], "failed: last")]
)
def test_refusal_of_a_failed_study_has_the_last_error(errors: list[str], text: str) -> None:
    lab = study_lab()
    lab.notification(inputs.AlgorithmGaveUp(1, "it failed"))
    lab.experiment.errors = errors

    ask(lab, "ask-1")

    answer = lab.answers["ask-1"]
    assert isinstance(answer, FailedPreconditionError)
    assert text in answer.message
    assert reason(lab, "ask-1") == "ERROR"


def test_agents_alone_report_results_where_agents_run_the_trials() -> None:
    lab = Lab()
    trial = lab.running()

    with pytest.raises(FailedPreconditionError, match="is no shared study"):
        lab.command(inputs.TellTrial(trial.id, 1, None))


def result(value: bytes, numbers: Numbers) -> Metric:
    return Metric(MetricType.FINAL, 0, value, numbers, 5)


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        (result(b"1", 1.0), result(b"1.0", 1.0), True),
        (result(b"a", None), result(b"a", None), True),
        (result(b"a", None), result(b"b", None), False),
        (result(b"1", 1.0), result(b"2", 2.0), False),
    ],
)
def test_result_is_repeated_if_value_or_numbers_are_the_same(
    first: Metric, second: Metric, *, equal: bool
) -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")
    lab.command(inputs.TellTrial(claim.trial_id, 1, first))
    again = inputs.TellTrial(claim.trial_id, 1, second)

    if equal:
        assert lab.command(again) == []
    else:
        with pytest.raises(InvalidArgumentError, match="its result cannot be changed"):
            lab.command(again)


def test_long_result_is_shown_in_part() -> None:
    lab = study_lab()
    claim = asked(lab, "ask-1")
    many = {f"metric-{number}": float(number) for number in range(50)}
    lab.command(inputs.TellTrial(claim.trial_id, 1, result(b"a", 1.0)))

    with pytest.raises(InvalidArgumentError) as refusal:
        lab.command(inputs.TellTrial(claim.trial_id, 1, result(b"b", many)))

    assert refusal.value.value == str(many)[:80]
