from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.demand import ExperimentDemand, demand_of
from svc_manager.domain.experiment import Budget, ExperimentState
from svc_manager.domain.inputs import AgentSilent, Resume, Stop
from svc_manager.domain.trial import TrialState
from tests.unit.services.manager.building import Lab


def test_waiting_and_running_attempts_are_counted_apart() -> None:
    lab = Lab(Budget(trial_concurrency=3))
    lab.running()

    assert demand_of(lab.experiment) == ExperimentDemand(
        waiting_count=2, running_count=1, concurrency=3, closed=False
    )


def test_attempt_of_a_silent_agent_counts_as_running() -> None:
    lab = Lab(Budget(trial_concurrency=1))
    trial = lab.running()

    lab.notification(AgentSilent(trial.runner_id))

    assert lab.experiment.counts[TrialState.UNKNOWN] == 1
    assert demand_of(lab.experiment).running_count == 1


def test_demand_of_a_stopped_experiment_is_closed_until_it_is_resumed() -> None:
    lab = Lab()
    lab.command(Stop())
    closed = demand_of(lab.experiment)

    lab.command(Resume(0, "", ""))

    assert lab.experiment.state is ExperimentState.INITIALIZED
    assert (closed.closed, demand_of(lab.experiment).closed) == (True, False)


def test_demand_of_a_failed_experiment_closes_when_its_last_trial_ends() -> None:
    lab = Lab(Budget(trial_concurrency=1))
    trial = lab.running()
    lab.experiment.state = ExperimentState.ERROR
    live = demand_of(lab.experiment)

    lab.finish(trial)

    assert (live.closed, demand_of(lab.experiment).closed) == (False, True)


def test_demand_of_a_done_experiment_stays_open() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_trial_number=1))

    lab.finish(lab.running())

    assert lab.experiment.state is ExperimentState.DONE
    assert demand_of(lab.experiment) == ExperimentDemand(0, 0, 1, closed=False)


def test_demand_has_the_limits_of_the_experiments_own_agents() -> None:
    limits = AgentLimits(max_agents=3)
    lab = Lab(Budget(agents=limits))

    assert demand_of(lab.experiment).limits == limits
