"""Conformance suite of tuners; a subclass builds the tuner under test.

Needs nothing but the library; pytest collects the methods because of their names.
"""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from random import Random
from typing import ClassVar

from nni.hpo.base import Generated, Resumable, Tuner, generate
from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import CONSTRAINTS_KEY, canonical_json
from nni.hpo.space.parser import contains, parse_space
from nni.testing.constrained import constrained_space

_FEW = 10
_CONSTRAINED_ROUNDS = 60

_ROUNDS = 30
"""Trials per test: more than built-in tuners draw before they learn."""


class TunerConformance(ABC):
    """Tests that every `nni.hpo.base.Tuner` must pass; subclass it in a module of tests.

    Examples:
        >>> from nni.hpo import RandomTuner
        >>> class TestMyTuner(TunerConformance):
        ...     search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
        ...
        ...     def make(self, seed):
        ...         return RandomTuner(seed=seed)
        >>> TestMyTuner().test_configurations_lie_in_the_space()
    """

    search_space: ClassVar[JsonValue]
    """A space of the usual language that the tuner supports."""

    finite_size: ClassVar[int | None] = None
    """Number of configurations after which the tuner is exhausted; None if it never is."""

    standard_space: ClassVar[bool] = True
    """True if configurations are points of the space, as the built-in types define them."""

    keeps_constraints: ClassVar[bool] = True
    """True if it honours `_constraints` in a search space of the usual language."""

    extra_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys of every configuration beside the names in the space."""

    @abstractmethod
    def make(self, seed: int) -> Tuner:
        """Return a new tuner that draws all its randomness from `seed`."""

    def ready(self, seed: int = 0) -> Tuner:
        """Return a new tuner that has been given the space."""
        tuner = self.make(seed)
        tuner.update_search_space(self.search_space)
        return tuner

    @property
    def rounds(self) -> int:
        """Number of trials of a long test."""
        return _ROUNDS if self.finite_size is None else min(_ROUNDS, self.finite_size)

    def test_configurations_lie_in_the_space(self) -> None:
        """Every configuration is a point of the search space."""
        if not self.standard_space:
            return
        space = parse_space(self.search_space)

        for configuration in play(self.ready(), self.rounds):
            own = {k: v for k, v in configuration.items() if k not in self.extra_keys}
            assert contains(space, own), configuration
            assert self.extra_keys <= configuration.keys()

    def test_configurations_keep_the_constraints(self) -> None:
        """No configuration breaks a constraint of the space, whatever is imported."""
        if not (self.standard_space and self.keeps_constraints):
            return
        declared = constrained_space(self.search_space)
        space, tuner = parse_space(declared), self.make(0)
        tuner.update_search_space(declared)
        free = parse_space(self.search_space)
        outside = [free.draw(Random(seed)) for seed in range(_FEW)]

        tuner.import_data([{"parameter": c, "value": value_of(c)} for c in outside])
        configurations = played(tuner, _CONSTRAINED_ROUNDS)

        assert configurations
        for configuration in configurations:
            own = {k: v for k, v in configuration.items() if k not in self.extra_keys}
            assert contains(space, own), configuration

    def test_constraints_that_allow_nothing_are_refused(self) -> None:
        """A space without an allowed configuration is a `ValueError`."""
        if not (self.standard_space and self.keeps_constraints and self.search_space):
            return
        keys = list(self.search_space)
        never = {**self.search_space, CONSTRAINTS_KEY: [f"`{keys[0]}` in []"]}
        try:
            self.make(0).update_search_space(never)
        except ValueError:
            return
        raise AssertionError("a space was accepted whose constraints allow nothing")

    def test_configurations_are_plain_json_values(self) -> None:
        """A trip through JSON changes neither a value nor its type."""
        tuner = self.ready()
        for parameter_id in range(self.rounds):
            (configuration,) = ask(tuner, parameter_id)
            assert repr(json.loads(json.dumps(configuration))) == repr(configuration)
            tell(tuner, parameter_id, configuration)

    def test_same_seed_and_calls_give_the_same_configurations(self) -> None:
        """A new tuner with the same inputs repeats itself."""
        first = play(self.ready(seed=7), self.rounds)

        assert play(self.ready(seed=7), self.rounds) == first

    def test_handed_out_configurations_belong_to_the_caller(self) -> None:
        """Changing a configuration afterwards does not change what the tuner does."""
        expected = play(self.ready(), self.rounds)
        tuner = self.ready()

        for parameter_id in range(self.rounds):
            (configuration,) = ask(tuner, parameter_id)
            assert configuration == expected[parameter_id]
            tell(tuner, parameter_id, json.loads(json.dumps(configuration)))
            if isinstance(configuration, dict):
                configuration.clear()

    def test_failed_trials_do_not_stop_it(self) -> None:
        """Trials without a result leave it able to propose."""
        tuner = self.ready()

        for parameter_id in range(self.rounds):
            ask(tuner, parameter_id)
            tuner.trial_end(parameter_id, False, trial_job_id="t")  # noqa: FBT003 - documented

    def test_serves_several_open_trials_that_end_in_any_order(self) -> None:
        """Trials that run at the same time may end in any order."""
        tuner = self.ready()
        ids = list(range(self.rounds))
        answer = generate(tuner, ids, start_later=lambda _id, _parameters: None)

        assert len(answer.parameters) + len(answer.deferred) == len(ids)
        for parameter_id, configuration in reversed(answer.parameters):
            tell(tuner, parameter_id, configuration)

    def test_survives_results_received_twice_or_too_late(self) -> None:
        """A duplicate or late report, or one of an unknown trial, is no error."""
        tuner = self.ready()
        (configuration,) = ask(tuner, 0)
        tell(tuner, 0, configuration)
        tell(tuner, 0, configuration)
        tuner.trial_end(99, True, trial_job_id="unknown")  # noqa: FBT003 - documented

        self.still_proposes(tuner)

    def test_survives_metrics_that_are_no_numbers(self) -> None:
        """NaN, infinities and odd dicts are legal to report and enter no model."""
        tuner = self.ready()
        values = [math.nan, math.inf, -math.inf, {"default": math.nan}, {"loss": 1.0}, "text", None]
        for parameter_id, value in enumerate(values[: self.rounds - 1]):
            (configuration,) = ask(tuner, parameter_id)
            tuner.receive_trial_result(
                parameter_id, configuration, value, trial_job_id="t", customized=False
            )
            tuner.trial_end(parameter_id, True, trial_job_id="t")  # noqa: FBT003 - documented

        self.still_proposes(tuner)

    def test_takes_the_default_of_a_dict_metric(self) -> None:
        """A dict metric counts with its `default`: proposals are those for plain numbers."""
        plain, wrapped = self.ready(), self.ready()

        for parameter_id in range(self.rounds):
            (left,), (right,) = ask(plain, parameter_id), ask(wrapped, parameter_id)
            assert left == right
            tell(plain, parameter_id, left)
            wrapped.receive_trial_result(
                parameter_id, right, {"default": value_of(right), "other": 1}
            )
            wrapped.trial_end(parameter_id, True)  # noqa: FBT003 - documented

    def test_survives_imported_samples(self) -> None:
        """Imported samples of any quality leave it able to propose."""
        donor = self.ready(seed=1)
        count = max(1, self.rounds // 3)
        good = [{"parameter": c, "value": value_of(c)} for c in play(donor, count)]
        bad = [
            {"parameter": {"no such name": 1}, "value": 1.0},
            {"parameter": good[0]["parameter"], "value": None},
            {"parameter": good[0]["parameter"], "value": math.nan},
            {"parameter": None, "value": 1.0},
        ]
        tuner = self.ready()

        tuner.import_data([*good, *bad])
        tuner.import_data([])

        if self.finite_size is None or self.finite_size > count:
            self.still_proposes(tuner)

    def test_survives_a_search_space_given_again(self) -> None:
        """A tuner that gets the same space again, with a trial open, continues to propose."""
        tuner = self.ready()
        (configuration,) = ask(tuner, 0)

        tuner.update_search_space(self.search_space)
        tell(tuner, 0, configuration)

        if self.finite_size is None or self.finite_size > 1:
            self.still_proposes(tuner)

    def test_goes_on_from_its_state(self) -> None:
        """A new tuner with a resumable tuner's state proposes what that one proposes."""
        tuner = self.ready()
        if not isinstance(tuner, Resumable):
            return
        half = self.rounds // 2
        play(tuner, half)
        text = json.dumps(tuner.state())

        other = self.ready(seed=12345)
        assert isinstance(other, Resumable)
        other.load_state(json.loads(text))

        rest = self.rounds - half
        assert play(other, rest, first_id=half) == play(tuner, rest, first_id=half)

    def test_preparing_ahead_changes_nothing(self) -> None:
        """Calls of `prepare_parameters` between requests change neither proposals nor state."""
        if type(self.make(0)).prepare_parameters is Tuner.prepare_parameters:
            return
        expected = play(self.ready(), self.rounds)
        tuner = self.ready()

        for parameter_id in range(self.rounds):
            if parameter_id % 3:
                before = tuner.state() if isinstance(tuner, Resumable) else None
                tuner.prepare_parameters()
                assert (tuner.state() if isinstance(tuner, Resumable) else None) == before
            (configuration,) = ask(tuner, parameter_id)
            assert configuration == expected[parameter_id]
            if parameter_id % 2:
                tuner.prepare_parameters()  # in vain: a result comes
            tell(tuner, parameter_id, configuration)

    def test_says_when_there_are_no_more_trials(self) -> None:
        """A finite tuner proposes each configuration once, then raises NoMoreTrialError always."""
        if self.finite_size is None:
            return
        tuner = self.ready()
        answer = generate(tuner, list(range(self.finite_size + 3)))

        texts = {canonical_json(configuration) for _, configuration in answer.parameters}
        assert len(answer.parameters) == len(texts) == self.finite_size
        assert answer.exhausted
        assert generate(tuner, [self.finite_size + 3]) == Generated((), (), exhausted=True)

    def still_proposes(self, tuner: Tuner) -> None:
        """Fail unless `tuner` proposes something."""
        assert len(ask(tuner, 1000)) == 1


def ask(tuner: Tuner, parameter_id: int) -> tuple[JsonValue, ...]:
    """Return the one configuration for an id, or nothing."""
    answer = generate(tuner, [parameter_id], start_later=lambda _id, _parameters: None)
    return tuple(configuration for _, configuration in answer.parameters)


def tell(tuner: Tuner, parameter_id: int, configuration: JsonValue) -> None:
    """Report a completed trial with the value of `value_of`."""
    tuner.receive_trial_result(
        parameter_id,
        configuration,
        value_of(configuration),
        trial_job_id=f"trial-{parameter_id}",
        customized=False,
    )
    tuner.trial_end(parameter_id, True, trial_job_id=f"trial-{parameter_id}")  # noqa: FBT003 - documented


def play(tuner: Tuner, trials: int, first_id: int = 0) -> list[JsonValue]:
    """Run trials one after the other, and report each; return their configurations."""
    configurations: list[JsonValue] = []
    for parameter_id in range(first_id, first_id + trials):
        (configuration,) = ask(tuner, parameter_id)
        configurations.append(json.loads(json.dumps(configuration)))
        tell(tuner, parameter_id, configuration)
    return configurations


def played(tuner: Tuner, trials: int) -> list[JsonValue]:
    """Run up to `trials` trials, fewer if there are no more; return their configurations."""
    configurations: list[JsonValue] = []
    for parameter_id in range(trials):
        for configuration in ask(tuner, parameter_id):
            configurations.append(json.loads(json.dumps(configuration)))
            tell(tuner, parameter_id, configuration)
    return configurations


def value_of(configuration: JsonValue) -> float:
    """Return a number in [0, 1) that any configuration has, the same in every process."""
    digest = hashlib.sha256(canonical_json(configuration).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
