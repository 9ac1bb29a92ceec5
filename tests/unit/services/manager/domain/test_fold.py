"""Fold of experiment events: one test per rule that is not a plain assignment."""

from dataclasses import replace

import pytest

from svc_common.experiment_events.causes import ExperimentCause, ExperimentReason
from svc_manager.domain import events
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.experiment import Budget, ExperimentState
from svc_manager.domain.fold import ERRORS_KEPT, fold
from svc_manager.domain.state import Experiment
from svc_manager.domain.values import OptimizeMode
from tests.unit.services.manager.building import Lab, change, created, encoded, generated

USER = ExperimentReason(ExperimentCause.STOPPED_BY_USER)


def requested(lab: Lab, *ids: int, request_id: str = "1-0") -> None:
    fold(lab.experiment, events.TrialsRequested(request_id, ids), 1)


def lab_without_requests() -> Lab:
    lab = Lab(started=False)
    fold(lab.experiment, events.AlgorithmStarted(1, False, False, {"nni": "0"}), 1)
    return lab


def test_creation_sets_the_fixed_part_of_the_state() -> None:
    experiment = Experiment()

    fold(experiment, created(Budget(trial_concurrency=3)), 1_000)

    assert experiment.created
    assert experiment.budget.trial_concurrency == 3
    assert (experiment.created_at_ms, experiment.changed_at_ms) == (1_000, 1_000)


def test_a_new_generation_drops_requests_and_suggestions_but_counts_requests_on() -> None:
    lab = lab_without_requests()
    requested(lab, 0, 1)
    fold(lab.experiment, generated("1-0", [0, 1]), 2)

    fold(lab.experiment, events.AlgorithmRequested(2, "/root"), 3)

    algorithm = lab.experiment.algorithm
    assert (algorithm.generation, algorithm.request_count) == (2, 1)
    assert not algorithm.queue
    assert not algorithm.started


def test_a_request_reserves_its_parameter_ids() -> None:
    lab = lab_without_requests()

    requested(lab, 0, 1, 2)

    assert lab.experiment.next_parameter_id == 3
    assert lab.experiment.algorithm.outstanding == 3


def test_deferred_parameters_stay_outstanding_until_they_come() -> None:
    lab = lab_without_requests()
    requested(lab, 0, 1)

    fold(lab.experiment, generated("1-0", [0], deferred=1), 2)
    assert lab.experiment.algorithm.outstanding == 1
    fold(lab.experiment, generated("", [1]), 3)

    assert lab.experiment.algorithm.outstanding == 0
    assert not lab.experiment.algorithm.exhausted
    assert list(lab.experiment.algorithm.queue) == [0, 1]


def test_an_answer_to_a_later_request_may_hold_a_deferred_id() -> None:
    lab = lab_without_requests()
    requested(lab, 0, 1)
    fold(lab.experiment, generated("1-0", [0], deferred=1), 2)
    requested(lab, 2, request_id="1-1")

    fold(lab.experiment, generated("1-1", [1], deferred=1), 3)

    algorithm = lab.experiment.algorithm
    assert algorithm.late_ids == {2}
    assert algorithm.outstanding == 1


def test_fewer_parameters_than_requested_exhaust_the_algorithm() -> None:
    lab = lab_without_requests()
    requested(lab, 0, 1)

    fold(lab.experiment, generated("1-0", [0]), 2)

    assert lab.experiment.algorithm.exhausted


def test_an_exhausted_algorithm_withdraws_what_it_deferred() -> None:
    lab = lab_without_requests()
    requested(lab, 0, 1)
    fold(lab.experiment, generated("1-0", [0], deferred=1), 2)

    fold(lab.experiment, generated("", [], exhausted=True), 3)

    assert lab.experiment.algorithm.exhausted
    assert lab.experiment.algorithm.outstanding == 0


@pytest.mark.parametrize(
    "event",
    [events.SearchSpaceChanged(encoded({})), events.DataImported("i1", encoded([]))],
    ids=["space", "data"],
)
def test_a_new_space_or_new_data_end_the_exhaustion(event: events.Event) -> None:
    lab = lab_without_requests()
    lab.experiment.algorithm.exhausted = True

    fold(lab.experiment, event, 2)

    assert not lab.experiment.algorithm.exhausted


def test_a_change_of_the_budget_keeps_the_limits_that_it_does_not_name() -> None:
    lab = lab_without_requests()
    before = lab.experiment.revision

    fold(lab.experiment, events.BudgetChanged(None, 77, None), 2)

    assert lab.experiment.budget == Budget(2, 77, None)
    assert lab.experiment.revision == before + 1


def test_change_of_limits_of_agents_keeps_the_others_and_the_budget() -> None:
    lab = lab_without_requests()
    fold(lab.experiment, events.AgentLimitsChanged(AgentLimits(max_agents=4, max_cost=5.0)), 2)
    before = lab.experiment.revision

    fold(lab.experiment, events.AgentLimitsChanged(AgentLimits(max_agents=8)), 3)
    fold(lab.experiment, events.BudgetChanged(None, 77, None), 4)

    assert lab.experiment.budget == Budget(2, 77, None, AgentLimits(max_agents=8, max_cost=5.0))
    assert lab.experiment.revision == before + 2


def test_only_the_last_errors_are_kept() -> None:
    lab = lab_without_requests()

    for number in range(ERRORS_KEPT + 5):
        text = f"Traceback\nValueError: {number}"
        fold(lab.experiment, events.AlgorithmFailed("generate", text, (number, 0), True), 2)

    assert len(lab.experiment.errors) == ERRORS_KEPT
    assert lab.experiment.errors[-1] == f"generate: ValueError: {ERRORS_KEPT + 4}"


def test_the_reason_of_an_error_state_is_not_repeated() -> None:
    lab = lab_without_requests()
    fold(lab.experiment, events.AlgorithmFailed("__init__", "ValueError: no", (1, 0), False), 2)

    changed = change(
        ExperimentState.INITIALIZED,
        ExperimentState.ERROR,
        ExperimentCause.ALGORITHM_GAVE_UP,
        "ValueError: no",
    )
    fold(lab.experiment, changed, 3)

    assert lab.experiment.errors == ["__init__: ValueError: no"]


def test_the_end_of_an_experiment_is_cleared_when_it_is_resumed() -> None:
    lab = lab_without_requests()
    path = ["RUNNING", "STOPPING", "STOPPED"]
    for time_ms, name in enumerate(path, start=10):
        changed = change(lab.experiment.state, ExperimentState[name])
        fold(lab.experiment, changed, time_ms)
    assert (lab.experiment.started_at_ms, lab.experiment.ended_at_ms) == (10, 12)

    resumed = change(ExperimentState.STOPPED, ExperimentState.INITIALIZED)
    fold(lab.experiment, resumed, 20)

    assert (lab.experiment.started_at_ms, lab.experiment.ended_at_ms) == (10, 0)


def test_an_illegal_transition_is_refused() -> None:
    lab = lab_without_requests()
    changed = change(ExperimentState.INITIALIZED, ExperimentState.VIEWED)

    with pytest.raises(ValueError, match="cannot go from INITIALIZED to VIEWED"):
        fold(lab.experiment, changed, 1)


def test_a_move_keeps_the_code_folder_unless_it_names_one() -> None:
    lab = lab_without_requests()
    fold(lab.experiment, events.ExperimentMoved("/a", "/code"), 1)

    fold(lab.experiment, events.ExperimentMoved("/b"), 2)

    assert (lab.experiment.directory, lab.experiment.code_directory) == ("/b", "/code")


def test_a_custom_trial_reserves_its_id_and_leaves_with_the_end() -> None:
    lab = lab_without_requests()
    fold(lab.experiment, events.CustomTrialAdded("r1", 6, encoded({"x": 1})), 1)
    assert lab.experiment.next_parameter_id == 7
    assert lab.experiment.custom_ids == {"r1": 6}

    fold(lab.experiment, events.ExperimentEnded(ExperimentState.STOPPED, USER), 2)

    assert not lab.experiment.custom_queue
    assert lab.experiment.custom_ids == {"r1": 6}


def test_a_closed_listener_leaves_no_port() -> None:
    experiment = Experiment()
    fold(experiment, events.ListenerOpened(8080, "prefix"), 1)
    assert (experiment.port, experiment.url_prefix) == (8080, "prefix")

    fold(experiment, events.ListenerClosed(), 2)

    assert experiment.port == 0


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (events.AlgorithmRequested(2, tuner=b"tuner"), True),
        (events.AlgorithmRequested(2), False),
        (events.BudgetChanged(3, None, None), True),
        (events.AgentLimitsChanged(AgentLimits()), True),
        (events.AlgorithmStarted(1, False, False, {}), False),
    ],
    ids=["hand-over", "resume", "budget", "agents", "start"],
)
def test_revision_counts_changes_of_the_configuration(event: events.Event, changes: bool) -> None:
    experiment = Lab().experiment
    revision = experiment.revision

    fold(experiment, event, 5)

    assert experiment.revision == revision + changes


def test_creation_sets_identity_environment_and_mode() -> None:
    event = replace(
        created(),
        config=b"config",
        environment_sha256="e" * 64,
        optimize_mode=OptimizeMode.MAXIMIZE,
    )
    experiment = Experiment()

    fold(experiment, event, 1_000)

    assert (experiment.id, experiment.config) == (event.experiment_id, b"config")
    assert (experiment.environment_sha256, experiment.interpreter) == ("e" * 64, "python3")
    assert experiment.optimize_mode is OptimizeMode.MAXIMIZE


def test_started_algorithm_has_its_capabilities_and_provenance() -> None:
    lab = Lab(started=False)

    fold(lab.experiment, events.AlgorithmStarted(1, True, True, {"nni": "4"}, ("size",)), 1)

    algorithm = lab.experiment.algorithm
    assert (algorithm.started, algorithm.lookahead, algorithm.assesses) == (True, True, True)
    assert (algorithm.provenance, algorithm.learned_metrics) == ({"nni": "4"}, ("size",))


def test_answer_adds_checkpoints_that_the_algorithm_will_not_name_again() -> None:
    lab = lab_without_requests()
    requested(lab, 0)

    fold(lab.experiment, replace(generated("1-0", [0]), released_checkpoints=("/a",)), 2)

    assert "/a" in lab.experiment.released_checkpoints


def test_changed_space_is_the_one_of_the_experiment() -> None:
    lab = Lab()

    fold(lab.experiment, events.SearchSpaceChanged(encoded({"y": 1})), 2)

    assert lab.experiment.search_space == encoded({"y": 1})


def test_creator_is_the_first_user_whose_request_creates() -> None:
    experiment = Lab(started=False).experiment
    for user, method in (
        ("eve", "StopExperiment"),
        ("ann", "CreateExperiment"),
        ("bob", "CreateExperiment"),
    ):
        fold(experiment, events.RequestRecorded(f"of {user}", user, method), 1)

    assert experiment.creator == "ann"
    assert set(experiment.requests) == {"of eve", "of ann", "of bob"}


def test_deferred_id_that_comes_leaves_the_others_promised() -> None:
    lab = lab_without_requests()
    requested(lab, 0, 1, 2)
    fold(lab.experiment, generated("1-0", [0], deferred=2), 2)

    fold(lab.experiment, generated("", [1]), 3)

    algorithm = lab.experiment.algorithm
    assert (algorithm.late_ids, algorithm.late_count) == ({2}, 1)


def test_ids_beyond_the_promised_number_leave_no_promise() -> None:
    lab = lab_without_requests()
    requested(lab, 0, 1, 2)
    fold(lab.experiment, generated("1-0", [0], deferred=1), 2)

    fold(lab.experiment, generated("", [1, 2]), 3)

    algorithm = lab.experiment.algorithm
    assert (algorithm.late_ids, algorithm.late_count) == (set(), 0)


def test_exhausted_algorithm_promises_no_id() -> None:
    lab = lab_without_requests()
    requested(lab, 0, 1)
    fold(lab.experiment, generated("1-0", [0], deferred=1), 2)

    fold(lab.experiment, generated("", [], exhausted=True), 3)

    algorithm = lab.experiment.algorithm
    assert (algorithm.late_ids, algorithm.late_count, algorithm.exhausted) == (set(), 0, True)


def test_last_error_is_not_repeated_as_the_reason_of_the_error_state() -> None:
    experiment = Experiment(state=ExperimentState.RUNNING, errors=["tell: first", "tell: last"])

    failed = change(
        ExperimentState.RUNNING, ExperimentState.ERROR, ExperimentCause.ALGORITHM_GAVE_UP, "last"
    )
    fold(experiment, failed, 1)

    assert experiment.errors == ["tell: first", "tell: last"]


def test_empty_remarks_of_a_trial_without_any_change_nothing() -> None:
    experiment = Experiment()

    fold(experiment, events.RemarksChanged("t0", "", (), False), 1)

    assert experiment.remarks == {}
