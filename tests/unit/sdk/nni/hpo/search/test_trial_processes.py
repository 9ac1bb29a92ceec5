"""Processes for trials of `optimize`."""

from concurrent.futures.process import BrokenProcessPool
from contextlib import closing

import pytest

from nni.hpo.search._trial_processes import TrialProcesses
from tests.support.dying_objective import end_process_at_zero


def test_process_that_dies_fails_its_trial_only() -> None:
    with closing(TrialProcesses(1)) as processes:
        with pytest.raises(BrokenProcessPool):
            processes.call(end_process_at_zero, {"x": 0})

        assert processes.call(end_process_at_zero, {"x": 2}) == 2


def test_exception_of_the_objective_is_raised() -> None:
    with closing(TrialProcesses(1)) as processes, pytest.raises(KeyError):
        processes.call(end_process_at_zero, {})


def test_processes_are_started_afresh_and_not_forked() -> None:
    with closing(TrialProcesses(1)) as processes:
        method = processes.call(eval, "__import__('multiprocessing').get_start_method()")

    assert method == "spawn"
