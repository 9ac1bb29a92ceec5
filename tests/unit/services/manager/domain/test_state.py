import pytest

from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.state import Algorithm, Experiment


@pytest.mark.parametrize(
    ("state", "time_ms"),
    [
        (ExperimentState.RUNNING, 700),
        (ExperimentState.NO_MORE_TRIAL, 700),
        (ExperimentState.DONE, 500),
        (ExperimentState.STOPPED, 500),
    ],
)
def test_time_counts_only_in_states_that_spend_it(state: ExperimentState, time_ms: int) -> None:
    experiment = Experiment(state=state, execution_ms=500, changed_at_ms=1_000)

    assert experiment.execution_time_ms(1_200) == time_ms


def test_a_clock_that_runs_backwards_spends_no_negative_time() -> None:
    experiment = Experiment(state=ExperimentState.RUNNING, execution_ms=500, changed_at_ms=1_000)

    assert experiment.execution_time_ms(900) == 500


def test_requested_and_promised_parameters_are_outstanding() -> None:
    algorithm = Algorithm(asked={"a": {1, 2}, "b": {3}}, late_ids={7, 8}, late_count=1)

    assert algorithm.outstanding == 4


def test_new_experiment_has_no_history() -> None:
    new = Experiment()
    times = (new.created_at_ms, new.started_at_ms, new.ended_at_ms, new.changed_at_ms)

    assert times == (0, 0, 0, 0)
    assert (new.execution_ms, new.counted_at_ms, new.logged_at_ms) == (0, 0, 0)
    assert (new.revision, new.next_parameter_id, new.port, new.unlearned_count) == (0, 0, 0, 0)
    assert (new.created, new.repeatable) == (False, True)
    assert (new.failed_starts.count, new.failed_starts.steps) == (0, 0)
    assert new.failed_starts.probe_at_ms == 0


def test_algorithm_that_was_never_requested_has_and_can_nothing() -> None:
    new = Algorithm()

    assert (new.generation, new.request_count, new.outstanding) == (0, 0, 0)
    assert (new.started, new.exhausted, new.lookahead, new.assesses) == (False,) * 4
