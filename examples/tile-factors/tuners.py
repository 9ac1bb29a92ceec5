"""Two tuners for lists of factors whose product is fixed.

A search space has `{"_type": "factor", "_value": [product, number of factors]}` for each list. Two
lists are neighbours if one prime factor has moved from one place to another: the search walks along
such steps, and each point that it visits is valid.

Sources: OpEvo, arXiv 2006.05664, of which the walk is; G-BFS, arXiv 1909.10616.
"""

import heapq
import itertools
import random

from nni.errors import NoMoreTrialError
from nni.tuner import Tuner

REPEATS = 1000
"""Draws of a point that was not proposed before, until the search counts as exhausted."""


def prime_factors(number):
    found, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found


def neighbours(factors):
    """Return all lists in which one prime factor has moved from one place to another."""
    found = []
    for source, value in enumerate(factors):
        for prime in sorted(set(prime_factors(value))):
            for target in range(len(factors)):
                if target != source:
                    moved = list(factors)
                    moved[source] //= prime
                    moved[target] *= prime
                    found.append(moved)
    return found


class _FactorTuner(Tuner):
    """Tuner that proposes no point twice, and ranks what it has learned."""

    def __init__(self, optimize_mode="minimize", seed=None):
        self._sign = 1 if optimize_mode == "minimize" else -1
        self._random = random.Random(seed)
        self._space = {}
        self._proposed = set()
        self._learned = []  # (loss, number, parameters), best first

    def update_search_space(self, search_space):
        for name, spec in search_space.items():
            if spec["_type"] != "factor":
                raise ValueError(f"{name}: _type must be factor, got {spec['_type']!r}")
        self._space = {name: spec["_value"] for name, spec in search_space.items()}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        self._learned.append((self._loss(value), len(self._learned), parameters))
        self._learned.sort()

    def import_data(self, data):
        """Learn the results from before a stop of the experiment."""
        for sample in data:
            self._is_new(sample["parameter"])
            self.receive_trial_result(None, sample["parameter"], sample["value"])

    def _loss(self, value):
        return self._sign * (value["default"] if isinstance(value, dict) else value)

    def _drawn(self):
        """Return a point of which each prime factor has a place at random."""
        found = {}
        for name, (product, count) in self._space.items():
            factors = [1] * count
            for prime in prime_factors(product):
                factors[self._random.randrange(count)] *= prime
            found[name] = factors
        return found

    def _is_new(self, parameters):
        """Return whether a point was not proposed before; it counts as proposed now."""
        point = repr(sorted(parameters.items()))
        is_new = point not in self._proposed
        self._proposed.add(point)
        return is_new


class OpEvo(_FactorTuner):
    """Evolution whose mutation is a walk: after each step it goes on with probability q.

    Args:
        optimize_mode: minimize or maximize.
        parents: number of the best points that are mutated.
        q: between 0 and 1; a larger one explores farther away.
        seed: makes the search repeatable.
    """

    def __init__(self, optimize_mode="minimize", parents=8, q=0.5, seed=None):
        super().__init__(optimize_mode, seed)
        self._parents = parents
        self._q = q

    def generate_parameters(self, parameter_id, **kwargs):
        for _ in range(REPEATS):
            found = self._drawn()
            if len(self._learned) >= self._parents:
                _loss, _number, parent = self._random.choice(self._learned[: self._parents])
                found = {name: self._walk(factors) for name, factors in parent.items()}
            if self._is_new(found):
                return found
        raise NoMoreTrialError("no list of factors was found that has not been tried")

    def _walk(self, factors):
        while self._random.random() < self._q:
            factors = self._random.choice(neighbours(factors) or [factors])
        return list(factors)


class GBFS(_FactorTuner):
    """Greedy best-first search: some neighbours of the best point that was not expanded yet.

    Args:
        optimize_mode: minimize or maximize.
        width: number of neighbours that are tried of each point.
        seed: makes the search repeatable.
    """

    def __init__(self, optimize_mode="minimize", width=5, seed=None):
        super().__init__(optimize_mode, seed)
        self._width = width
        self._waiting = []  # points that are proposed next
        self._frontier = []  # learned and not expanded, a heap

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        super().receive_trial_result(parameter_id, parameters, value, **kwargs)
        heapq.heappush(self._frontier, (self._loss(value), len(self._learned), parameters))

    def generate_parameters(self, parameter_id, **kwargs):
        while self._frontier and not self._waiting:
            _loss, _number, best = heapq.heappop(self._frontier)
            around = [
                best | {name: moved} for name in sorted(best) for moved in neighbours(best[name])
            ]
            self._random.shuffle(around)
            fresh = (one for one in around if self._is_new(one))
            self._waiting = list(itertools.islice(fresh, self._width))
        if self._waiting:
            return self._waiting.pop()
        for _ in range(REPEATS):  # nothing is learned, or everything known is expanded
            found = self._drawn()
            if self._is_new(found):
                return found
        raise NoMoreTrialError("no list of factors was found that has not been tried")
