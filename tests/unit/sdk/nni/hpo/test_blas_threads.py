"""Linear algebra of an algorithm in this process takes one thread, and no longer than that."""

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from nni.hpo.base import Tuner
from nni.hpo.study import Study


def threads() -> set[int]:
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


class Looking(Tuner):
    """Notes how many threads it has."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def update_search_space(self, search_space: object) -> None:
        """Take any."""

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, float]:
        np.linalg.cholesky(np.eye(3))
        self.seen |= threads()
        return {"x": 1.0}

    def receive_trial_result(
        self, parameter_id: int, parameters: object, value: object, **kwargs: object
    ) -> None:
        """Learn nothing."""


def test_tuner_has_one_thread_and_the_caller_keeps_its_own() -> None:
    tuner = Looking()
    study = Study({}, tuner=tuner)

    with threadpool_limits(2, user_api="blas"):
        study.ask()
        after = threads()

    assert tuner.seen == {1}
    assert after == {2}
