"""A tuner and an assessor of one's own."""

import random

from nni.assessor import Assessor, AssessResult
from nni.tuner import Tuner


class HillClimber(Tuner):
    """Steps away from the best point found so far; starts anywhere.

    Args:
        step: length of a step, as a fraction of each range.
        seed: makes the search repeatable.
    """

    def __init__(self, step=0.2, seed=None):
        self._step = step
        self._random = random.Random(seed)
        self._ranges = {}
        self._best = None

    def update_search_space(self, search_space):
        self._ranges = {name: spec["_value"] for name, spec in search_space.items()}

    def generate_parameters(self, parameter_id, **kwargs):
        if self._best is None:
            return {name: self._random.uniform(*ends) for name, ends in self._ranges.items()}
        _value, center = self._best
        return {name: self._near(center[name], *ends) for name, ends in self._ranges.items()}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        if self._best is None or value < self._best[0]:
            self._best = (value, parameters)

    def import_data(self, data):
        """Learn the results from before a stop of the experiment."""
        for sample in data:
            self.receive_trial_result(None, sample["parameter"], sample["value"])

    def _near(self, center, low, high):
        reach = self._step * (high - low)
        return min(high, max(low, center + self._random.uniform(-reach, reach)))


class Patience(Assessor):
    """Stops a trial that has not improved for some reports.

    Args:
        reports: how many.
    """

    def __init__(self, reports=3):
        self._reports = reports

    def assess_trial(self, trial_job_id, trial_history):
        earlier, recent = trial_history[: -self._reports], trial_history[-self._reports :]
        if earlier and min(recent) >= min(earlier):
            return AssessResult.Bad
        return AssessResult.Good
