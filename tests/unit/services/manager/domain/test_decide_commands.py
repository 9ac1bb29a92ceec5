import pytest

from nni_wire.pools import experiment_pool
from svc_common.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from svc_common.experiment_events.causes import ExperimentCause, ExperimentReason
from svc_manager.domain import events, inputs
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.decide_commands import cut_off
from svc_manager.domain.decision_round import Round
from svc_manager.domain.effects import (
    CloseListener,
    ForgetExperiment,
    OpenListener,
    SendStop,
    WithdrawTask,
    WriteSummary,
)
from svc_manager.domain.experiment import Budget, ExperimentSettings, ExperimentState
from svc_manager.domain.reports import ExitCause
from tests.unit.services.manager.building import (
    Lab,
    created,
    encoded,
    exited,
    generated,
    kinds,
)
from tests.unit.services.manager.domain.shared_study import study_lab


def stopped(lab: Lab) -> Lab:
    for trial in list(lab.experiment.live.values()):
        lab.command(inputs.KillTrial(trial.id))
    lab.command(inputs.Stop())
    assert lab.experiment.state.name == "STOPPED"
    return lab


def test_creation_states_the_experiment_its_algorithm_and_its_port() -> None:
    lab = Lab(started=False)
    lab.experiment = type(lab.experiment)()

    emitted = lab.command(inputs.Create(created(), 8080, "p"))

    assert kinds(emitted) == [
        events.ExperimentCreated,
        events.AlgorithmRequested,
        events.ExperimentStateChanged,
        events.ListenerOpened,
    ]
    assert lab.effects == [WriteSummary(), OpenListener(8080, "p")]


def test_a_repeated_request_has_no_further_effect() -> None:
    lab = Lab()
    lab.command(inputs.Update(trial_concurrency=3), "req-1")

    assert lab.command(inputs.Update(trial_concurrency=3), "req-1") == []
    assert lab.experiment.revision == 1


def test_limits_of_agents_are_changed_and_checked_together_with_those_that_stay() -> None:
    lab = Lab(
        Budget(agents=AgentLimits(min_agents=2, max_agents=4)),
        ExperimentSettings(pool=experiment_pool("expt1234")),
    )
    raised = AgentLimits(max_agents=8, max_agent_time_ms=7_200_000)

    emitted = lab.command(inputs.ChangeAgentLimits(raised))

    assert emitted == [events.AgentLimitsChanged(raised)]
    assert lab.experiment.budget.agents.min_agents == 2
    assert lab.command(inputs.ChangeAgentLimits(AgentLimits(max_agents=8))) == []
    unlimited = AgentLimits(removed=("maxAgents",))
    assert lab.command(inputs.ChangeAgentLimits(unlimited)) == [
        events.AgentLimitsChanged(unlimited)
    ]
    assert lab.experiment.budget.agents == AgentLimits(2, max_agent_time_ms=7_200_000)
    assert lab.command(inputs.ChangeAgentLimits(unlimited)) == []
    with pytest.raises(InvalidArgumentError, match="remove must have only minAgents"):
        lab.command(inputs.ChangeAgentLimits(AgentLimits(removed=("agents",))))
    with pytest.raises(InvalidArgumentError, match="maxAgents must be >= minAgents, which is 2"):
        lab.command(inputs.ChangeAgentLimits(AgentLimits(max_agents=1)))
    with pytest.raises(InvalidArgumentError, match="costPerAgentHour must be given with maxCost"):
        lab.command(inputs.ChangeAgentLimits(AgentLimits(max_cost=9.0)))


def test_limits_of_agents_of_a_stopped_experiment_are_not_changed() -> None:
    lab = stopped(Lab(settings=ExperimentSettings(pool=experiment_pool("expt1234"))))

    with pytest.raises(FailedPreconditionError, match="resume it first"):
        lab.command(inputs.ChangeAgentLimits(AgentLimits(max_agents=8)))


def test_experiment_without_agents_of_its_own_has_no_limits_of_agents() -> None:
    with pytest.raises(InvalidArgumentError, match="agentLimits can be changed only"):
        Lab().command(inputs.ChangeAgentLimits(AgentLimits(max_agents=8)))


@pytest.mark.claim("platform", 45)
def test_each_update_adds_one_to_the_revision() -> None:
    lab = Lab()

    lab.command(inputs.Update(trial_concurrency=4))
    lab.command(inputs.Update(max_duration_ms=7_200_000))
    lab.command(inputs.Update(max_trial_number=50))
    lab.command(inputs.Update(search_space=encoded({})))

    assert lab.experiment.revision == 4
    assert lab.experiment.budget == Budget(4, 50, 7_200_000)


def test_hand_over_requests_the_next_generation_with_the_tuner() -> None:
    lab = Lab()
    running = lab.running()

    emitted = lab.command(inputs.ChangeTuner(b"tuner"), "req-1")

    requested = events.AlgorithmRequested(2, "/root/expt1234", tuner=b"tuner")
    assert emitted[0] == requested
    assert (lab.experiment.tuner, lab.experiment.revision) == (b"tuner", 1)
    assert lab.experiment.state is ExperimentState.RUNNING
    assert running.id in lab.experiment.live
    assert lab.command(inputs.ChangeTuner(b"tuner"), "req-1") == []


def test_no_parameters_are_requested_until_the_next_tuner_has_started() -> None:
    lab = Lab()
    lab.waiting()

    lab.command(inputs.ChangeTuner(b"tuner"))
    for trial in list(lab.experiment.live.values()):
        lab.command(inputs.KillTrial(trial.id))
    before = dict(lab.experiment.algorithm.asked)
    emitted = lab.notification(events.AlgorithmStarted(2, False, False, {}))

    assert before == {}
    assert kinds(emitted) == [events.AlgorithmStarted, events.TrialsRequested]
    requested = emitted[1]
    assert isinstance(requested, events.TrialsRequested)
    assert requested.request_id.startswith("2-")


def test_answers_of_the_replaced_tuner_are_ignored() -> None:
    lab = Lab()
    (request_id,) = lab.experiment.algorithm.asked
    lab.command(inputs.ChangeTuner(b"tuner"))

    answer = lab.notification(generated(request_id, [0, 1]))
    late = lab.notification(generated("", [], exhausted=True))
    started = lab.notification(events.AlgorithmStarted(1, False, False, {}))
    gave_up = lab.notification(inputs.AlgorithmGaveUp(1, "it failed"))

    assert [answer, late, started, gave_up] == [[], [], [], []]
    assert not lab.experiment.algorithm.exhausted


def test_exhausted_experiment_goes_on_with_another_tuner() -> None:
    lab = Lab()
    lab.answer(exhausted=True, count=0)
    before = lab.experiment.state

    lab.command(inputs.ChangeTuner(b"tuner"))

    assert (before, lab.experiment.state) == (ExperimentState.DONE, ExperimentState.RUNNING)


@pytest.mark.parametrize("end", ["stopped", "failed"])
def test_ended_experiment_is_not_handed_over(end: str) -> None:
    lab = Lab()
    if end == "stopped":
        stopped(lab)
    else:
        lab.notification(inputs.AlgorithmGaveUp(1, "it failed"))
    before = len(lab.log)

    with pytest.raises(FailedPreconditionError, match=r"is (STOPPED|ERROR)"):
        lab.command(inputs.ChangeTuner(b"tuner"))

    assert len(lab.log) == before


@pytest.mark.claim("platform", 45)
@pytest.mark.parametrize(
    ("update", "field"),
    [
        (inputs.Update(trial_concurrency=0), "trial_concurrency"),
        (inputs.Update(trial_concurrency=100_000), "trial_concurrency"),
        (inputs.Update(max_trial_number=0), "max_trial_number"),
        (inputs.Update(max_duration_ms=0), "max_experiment_duration"),
        (inputs.Update(trial_concurrency=5, max_trial_number=-1), "max_trial_number"),
    ],
)
def test_an_update_out_of_range_is_refused_and_changes_nothing(
    update: inputs.Update, field: str
) -> None:
    lab = Lab()
    before = lab.experiment.budget

    with pytest.raises(InvalidArgumentError) as refusal:
        lab.command(update)

    assert refusal.value.field == field
    assert lab.experiment.budget == before


@pytest.mark.parametrize(
    "update",
    [
        inputs.Update(trial_concurrency=1),
        inputs.Update(trial_concurrency=99_999),
        inputs.Update(max_trial_number=1),
        inputs.Update(max_duration_ms=1),
    ],
)
def test_an_update_at_its_limit_is_accepted(update: inputs.Update) -> None:
    lab = Lab()

    assert events.BudgetChanged in kinds(lab.command(update))


def test_trials_are_added_to_a_study_at_any_time_and_to_a_search_while_it_runs() -> None:
    search = Lab(started=False)
    study = Lab(settings=study_lab().experiment.settings, started=False)
    with pytest.raises(FailedPreconditionError, match="is INITIALIZED"):
        search.command(inputs.AddTrial("a", encoded({"x": 1})))

    study.command(inputs.AddTrial("a", encoded({"x": 1})))

    assert study.experiment.state.name == "INITIALIZED"
    assert len(study.experiment.custom_queue) == 1


def test_a_stop_cancels_live_trials_and_ends_with_the_last_one() -> None:
    lab = Lab(Budget(trial_concurrency=2))
    lab.answer()
    running = lab.running()
    waiting = lab.waiting()

    lab.command(inputs.Stop())
    assert lab.experiment.state.name == "STOPPING"
    assert waiting.state.name == "SYS_CANCELED"
    assert WithdrawTask(waiting.id, 1) in lab.effects
    assert any(isinstance(effect, SendStop) for effect in lab.effects)
    lab.report(running, 1, exited(None, ExitCause.STOPPED))

    assert running.state.name == "SYS_CANCELED"
    assert lab.experiment.state.name == "STOPPED"
    assert lab.experiment.ended_at_ms == lab.now_ms
    assert lab.effects[-2:] == [ForgetExperiment(), WriteSummary()]


def test_stopping_closes_the_port() -> None:
    lab = Lab()
    lab.experiment = type(lab.experiment)()
    lab.command(inputs.Create(created(), 8080, ""))

    lab.command(inputs.Stop())

    assert CloseListener() in lab.effects
    assert lab.experiment.port == 0


def test_stopping_twice_changes_nothing_more() -> None:
    lab = stopped(Lab())

    assert lab.command(inputs.Stop()) == []


def test_an_experiment_in_error_can_be_stopped() -> None:
    lab = Lab(started=False)
    lab.notification(inputs.AlgorithmGaveUp(1, "TypeError: missing argument"))

    lab.command(inputs.Stop())

    assert lab.experiment.state.name == "STOPPED"


@pytest.mark.claim("platform", 23)
def test_an_algorithm_that_cannot_be_built_is_an_error_without_trials() -> None:
    lab = Lab(started=False)

    lab.notification(inputs.AlgorithmGaveUp(1, "TypeError: missing argument"))

    assert lab.experiment.state.name == "ERROR"
    assert lab.experiment.errors == ["TypeError: missing argument"]
    assert not lab.experiment.trials


def test_a_failing_call_of_the_algorithm_is_kept_and_the_experiment_goes_on() -> None:
    lab = Lab()
    failure = events.AlgorithmFailed(
        "receive_trial_result", "Traceback\nKeyError: 'x'\n", (3, 1), True
    )

    lab.notification(failure)
    assert lab.notification(failure) == []

    assert lab.experiment.errors == ["receive_trial_result: KeyError: 'x'"]
    assert lab.experiment.state.name == "RUNNING"


@pytest.mark.claim("platform", 30)
def test_a_resumed_experiment_keeps_its_trials_and_counts_on() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_trial_number=2))
    lab.finish(lab.running())
    stopped(lab)
    made = len(lab.experiment.trials)

    lab.command(inputs.Resume(0, "", ""))
    assert lab.experiment.state.name == "INITIALIZED"
    assert lab.experiment.algorithm.generation == 2
    lab.notification(events.AlgorithmStarted(1, lookahead=False, assesses=False, provenance={}))
    assert lab.experiment.state.name == "INITIALIZED"  # the answer of an earlier generation
    lab.command(inputs.Update(max_trial_number=made + 1))
    lab.notification(events.AlgorithmStarted(2, lookahead=False, assesses=False, provenance={}))
    lab.answer()

    newest = list(lab.experiment.trials.values())[-1]
    assert newest.sequence_id == made
    assert newest.parameter_id not in {
        t.parameter_id for t in list(lab.experiment.trials.values())[:-1]
    }


@pytest.mark.parametrize("command", [inputs.Resume, inputs.View])
def test_reopened_listener_keeps_its_prefix_unless_another_one_is_given(
    command: type[inputs.Resume] | type[inputs.View],
) -> None:
    lab = Lab(started=False)
    lab.experiment = type(lab.experiment)()
    lab.command(inputs.Create(created(), 8080, "before"))
    prefixes = []

    for given in ("", "after"):
        lab.command(inputs.Stop())
        lab.command(command(8080, given, ""))
        prefixes.append(lab.experiment.url_prefix)

    assert prefixes == ["before", "after"]


@pytest.mark.parametrize("command", [inputs.Resume, inputs.View])
@pytest.mark.parametrize("is_open", [True, False])
def test_open_listener_is_closed_before_the_experiment_is_opened_again(
    command: type[inputs.Resume] | type[inputs.View], *, is_open: bool
) -> None:
    lab = stopped(Lab())
    lab.command(inputs.View(8080 if is_open else 0, "", ""))

    emitted = lab.command(command(8081, "", ""))

    closed = [events.ListenerClosed] if is_open else []
    listeners = {events.ListenerClosed, events.ListenerOpened}
    assert [kind for kind in kinds(emitted) if kind in listeners] == [
        *closed,
        events.ListenerOpened,
    ]
    assert lab.experiment.port == 8081


@pytest.mark.parametrize("command", [inputs.Resume, inputs.View])
@pytest.mark.parametrize(
    ("directory", "moved"), [("", False), ("before", False), ("/elsewhere", True)]
)
def test_only_another_folder_is_a_move(
    command: type[inputs.Resume] | type[inputs.View], directory: str, *, moved: bool
) -> None:
    lab = stopped(Lab())
    before = lab.experiment.directory

    emitted = lab.command(command(0, "", before if directory == "before" else directory))

    assert (events.ExperimentMoved in kinds(emitted)) is moved
    assert lab.experiment.directory == (directory if moved else before)


@pytest.mark.parametrize("port", [8080, 0])
def test_copied_experiment_is_cut_off_once(port: int) -> None:
    lab = Lab(started=False)
    lab.experiment = type(lab.experiment)()
    lab.command(inputs.Create(created(), port, ""))
    lab.notification(events.AlgorithmStarted(1, lookahead=False, assesses=False, provenance={}))
    trial = lab.running()
    round_ = Round(lab.experiment, lab.now_ms, lab.ids, lab.callers)

    cut_off(round_)
    count = len(round_.events)
    cut_off(round_)

    assert len(round_.events) == count
    assert (events.ListenerClosed in kinds(round_.events)) is (port > 0)
    assert trial.state.name == "FAILED"
    assert (lab.experiment.state.name, lab.experiment.port) == ("STOPPED", 0)
    assert kinds(round_.events)[-1] is events.ExperimentEnded


def test_trials_that_were_live_when_a_folder_was_copied_are_failed_at_resume() -> None:
    lab = Lab()
    trial = lab.running()
    lab.experiment.state = ExperimentState.STOPPED  # as a cut-off import leaves it

    lab.command(inputs.Resume(0, "", "/elsewhere"))

    assert trial.state.name == "FAILED"
    assert lab.experiment.directory == "/elsewhere"


def test_a_running_experiment_can_be_neither_resumed_nor_viewed() -> None:
    lab = Lab()

    for command in (inputs.Resume(0, "", ""), inputs.View(0, "", "")):
        with pytest.raises(FailedPreconditionError, match="RUNNING"):
            lab.command(command)


@pytest.mark.claim("platform", 31)
def test_a_viewed_experiment_refuses_changes_and_is_closed_by_stop() -> None:
    lab = stopped(Lab())
    lab.command(inputs.View(8081, "", ""))
    assert lab.experiment.state.name == "VIEWED"
    assert lab.experiment.port == 8081

    changes: list[inputs.Command] = [
        inputs.Update(trial_concurrency=2),
        inputs.AddTrial("q", b""),
        inputs.ImportData("q", b""),
    ]
    for change in changes:
        with pytest.raises(FailedPreconditionError):
            lab.command(change)
    emitted = lab.command(inputs.Stop())

    assert lab.experiment.state.name == "STOPPED"
    assert lab.experiment.port == 0
    assert events.ExperimentEnded in kinds(emitted)


@pytest.mark.claim("platform", 47)
def test_killing_a_trial_cancels_it_and_killing_it_again_is_refused() -> None:
    lab = Lab()
    trial = lab.running()
    lab.command(inputs.KillTrial(trial.id))
    lab.report(trial, 1, exited(None, ExitCause.STOPPED))
    assert trial.state.name == "USER_CANCELED"

    with pytest.raises(FailedPreconditionError, match="USER_CANCELED"):
        lab.command(inputs.KillTrial(trial.id))
    with pytest.raises(NotFoundError):
        lab.command(inputs.KillTrial("zzzzz"))


def test_killing_a_waiting_trial_takes_its_task_off_the_queue() -> None:
    lab = Lab()
    trial = lab.waiting()

    lab.command(inputs.KillTrial(trial.id))

    assert trial.state.name == "USER_CANCELED"
    assert WithdrawTask(trial.id, 1) in lab.effects


def test_a_trial_can_be_added_only_while_there_is_budget() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_trial_number=2))
    lab.answer()
    lab.command(inputs.AddTrial("a", encoded({"x": 1})))

    with pytest.raises(FailedPreconditionError, match="no trial left"):
        lab.command(inputs.AddTrial("b", encoded({"x": 1})))


def test_an_id_that_another_request_has_is_refused() -> None:
    lab = Lab(Budget(trial_concurrency=2))
    lab.answer()
    second = lab.running()
    first = lab.waiting()
    lab.command(inputs.KillTrial(first.id), "req-1")

    assert lab.command(inputs.KillTrial(first.id), "req-1") == [], "a repetition, though it is over"
    with pytest.raises(InvalidArgumentError, match="request_id must name one request only"):
        lab.command(inputs.KillTrial(second.id), "req-1")
    with pytest.raises(FailedPreconditionError):
        lab.command(inputs.KillTrial(first.id), "req-2")


def test_requests_are_distinguished_after_their_log_is_folded_again() -> None:
    lab = Lab()
    lab.command(inputs.Update(trial_concurrency=3), "req-1")
    lab.experiment = lab.refolded()

    assert lab.command(inputs.Update(trial_concurrency=3), "req-1") == []
    with pytest.raises(InvalidArgumentError, match="request_id"):
        lab.command(inputs.Update(trial_concurrency=4), "req-1")


def test_stopping_ends_trials_of_an_agent_that_does_not_answer() -> None:
    lab = Lab(Budget(trial_concurrency=2))
    lab.answer()
    trial = lab.running()

    lab.notification(inputs.AgentOverdue("r1"))
    assert trial.state.name == "RUNNING", "no stop was requested"
    lab.command(inputs.Stop())
    lab.notification(inputs.AgentOverdue("other"))
    assert lab.experiment.state.name == "STOPPING"
    lab.notification(inputs.AgentOverdue("r1"))

    assert trial.state.name == "SYS_CANCELED"
    assert lab.experiment.state.name == "STOPPED"


def test_concurrency_of_zero_pauses_an_exploration_whose_trials_go_on() -> None:
    settings = ExperimentSettings(algorithm_service="nas", least_concurrency=0)
    lab = Lab(Budget(trial_concurrency=2), settings)
    lab.answer()
    asked = lab.experiment.algorithm.request_count

    lab.command(inputs.Update(trial_concurrency=0))
    lab.finish(lab.running())

    assert len(lab.experiment.live) == 1
    assert lab.experiment.algorithm.request_count == asked
    assert lab.experiment.state is ExperimentState.RUNNING


def causes(emitted: list[events.Event]) -> list[ExperimentCause]:
    """Return the causes of the changes of state and of the end."""
    return [
        event.cause.cause
        for event in emitted
        if isinstance(event, events.ExperimentStateChanged | events.ExperimentEnded)
    ]


def test_stop_names_its_cause_and_so_do_resumption_and_view() -> None:
    lab = Lab()

    stop = lab.command(inputs.Stop(ExperimentCause.MANAGER_TERMINATED))
    view = lab.command(inputs.View(0, "", ""))
    end = lab.command(inputs.Stop(ExperimentCause.MANAGER_TERMINATED))
    resume = lab.command(inputs.Resume(0, "", ""))

    assert causes(stop)[0] is ExperimentCause.MANAGER_TERMINATED
    assert causes(view) == [ExperimentCause.OPENED_FOR_READING]
    assert causes(end) == [ExperimentCause.UNSPECIFIED, ExperimentCause.MANAGER_TERMINATED]
    assert causes(resume) == [ExperimentCause.RESUMED]


def test_copied_experiment_ends_because_its_log_was_copied() -> None:
    lab = Lab()
    round_ = Round(lab.experiment, lab.now_ms, lab.ids)

    cut_off(round_)

    copied = ExperimentReason(ExperimentCause.LOG_COPIED)
    assert causes(round_.events) == [
        ExperimentCause.LOG_COPIED,
        ExperimentCause.UNSPECIFIED,
        ExperimentCause.LOG_COPIED,
    ]
    assert round_.events[-1] == events.ExperimentEnded(ExperimentState.STOPPED, copied)


def test_algorithm_is_requested_from_the_service_of_the_experiment() -> None:
    lab = Lab(settings=ExperimentSettings(algorithm_service="nas"))
    stopped(lab)
    lab.command(inputs.Resume(0, "", ""))

    asked = [event for _, event in lab.log if isinstance(event, events.AlgorithmRequested)]

    assert [(event.generation, event.service) for event in asked] == [(1, "nas"), (2, "nas")]
