from nni.hpo.base import DEFERRED
from nni.nas.execution.waiting_tuner import WaitingTuner


def test_all_configurations_are_deferred_and_none_ends_the_experiment() -> None:
    tuner = WaitingTuner()
    tuner.update_search_space({})

    first = tuner.generate_multiple_parameters([0, 1])
    tuner.receive_trial_result(0, {}, 1.0)

    assert [*first, *tuner.generate_multiple_parameters([2])] == [DEFERRED] * 3
