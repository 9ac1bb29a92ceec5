"""Conformance suite of advisors; a subclass builds the advisor under test."""

import json
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from random import Random
from typing import ClassVar

from nni.hpo import commands
from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.commands import CommandType, MetricType
from nni.hpo.json_value import JsonValue
from nni.hpo.space.parser import contains, parse_space
from nni.testing.constrained import constrained_space
from nni.testing.tuners import value_of

_IMPORTED = 10

_ROUNDS = 60
"""Trials per test: enough for several brackets of small budgets."""


class AdvisorDriver:
    """Host of one advisor for tests: records its commands; sends requests, reports and ends.

    Args:
        advisor: has not been initialized.
        search_space: given to it now.
        scored: takes the parameters of a job and returns its result in `play`.
    """

    def __init__(
        self,
        advisor: MsgDispatcherBase,
        search_space: JsonValue,
        scored: Callable[[dict[str, JsonValue]], float] = value_of,
    ) -> None:
        self.advisor = advisor
        self.scored = scored
        self.sent: deque[dict[str, JsonValue]] = deque()
        """Jobs that have not been taken yet."""
        self.others: list[CommandType] = []
        """Kinds of all other commands."""
        self._handle(CommandType.Initialize, search_space)

    def deliver(self, command: CommandType, data: JsonValue) -> None:
        """Record a command: the data of a job in `sent`, other commands by type in `others`."""
        if command is CommandType.NewTrialJob:
            self.sent.append(json.loads(json.dumps(data)))
        else:
            self.others.append(command)

    def request(self, count: int = 1) -> list[dict[str, JsonValue]]:
        """Request jobs; return and clear all jobs that the advisor has sent, late ones too."""
        self._handle(CommandType.RequestTrialJobs, count)
        jobs = list(self.sent)
        self.sent.clear()
        return jobs

    def report(self, job: dict[str, JsonValue], value: JsonValue, kind: str = "FINAL") -> None:
        """Report a metric of a job."""
        data = {
            "parameter_id": job["parameter_id"],
            "value": value,
            "trial_job_id": f"trial-{job['parameter_id']}",
            "type": kind,
            "sequence": 0,
        }
        self._handle(CommandType.ReportMetricData, data)

    def end(self, job: dict[str, JsonValue], event: str = "SUCCEEDED") -> None:
        """Report the end of a job."""
        data = {
            "trial_job_id": f"trial-{job['parameter_id']}",
            "event": event,
            "hyper_params": json.dumps({"parameter_source": "algorithm"} | job),
        }
        self._handle(CommandType.TrialEnd, data)

    def import_data(self, data: JsonValue) -> None:
        """Import samples."""
        self._handle(CommandType.ImportData, data)

    def update_search_space(self, search_space: JsonValue) -> None:
        """Send another search space."""
        self._handle(CommandType.UpdateSearchSpace, search_space)

    def play(self, trials: int, concurrency: int = 1) -> Iterator[dict[str, JsonValue]]:
        """Run trials, each reporting the score of its parameters; yield jobs as they start."""
        running: deque[dict[str, JsonValue]] = deque()
        started = self.request(concurrency)
        while trials:
            for job in started[:trials]:
                yield job
            trials -= min(trials, len(started))
            running += started
            job = running.popleft()  # an advisor that waits with nothing running is stuck
            self.report(job, self.scored(job["parameters"]))
            self.end(job)
            started = self.request(1)

    def _handle(self, command: CommandType, data: JsonValue) -> None:
        commands.connect(self)
        try:
            self.advisor.process_command(command, data)
        finally:
            commands.connect(None)


class AdvisorConformance(ABC):
    """Tests that every `nni.hpo.MsgDispatcherBase` must pass; subclass it in a module of tests.

    Examples:
        >>> from nni.hpo import Hyperband
        >>> class TestMyAdvisor(AdvisorConformance):
        ...     search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
        ...
        ...     def make(self, seed):
        ...         return Hyperband(seed=seed)
        >>> TestMyAdvisor().test_parameter_ids_are_unique()
    """

    search_space: ClassVar[JsonValue]
    """A space of the usual language that the advisor supports."""

    keeps_constraints: ClassVar[bool] = True
    """True if it honours `_constraints` in a search space of the usual language."""

    extra_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys of every configuration beside the names in the space."""

    optional_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys of some configurations beside these."""

    @abstractmethod
    def make(self, seed: int) -> MsgDispatcherBase:
        """Return a new advisor that draws all its randomness from `seed`."""

    def _own(self, parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the parameters that belong to the search space, without the advisor's own keys."""
        others = self.extra_keys | self.optional_keys
        return {key: value for key, value in parameters.items() if key not in others}

    def _score(self, parameters: dict[str, JsonValue]) -> float:
        """Return a result, the same on every machine; folders, which differ, do not count."""
        return value_of({k: v for k, v in parameters.items() if k not in self.optional_keys})

    def ready(self, seed: int = 0) -> AdvisorDriver:
        """Return the driver of a new advisor that has been given the space."""
        return AdvisorDriver(self.make(seed), self.search_space, self._score)

    def test_says_that_it_is_initialized(self) -> None:
        """The first command is answered with `Initialized`."""
        assert self.ready().others == [CommandType.Initialized]

    def test_configurations_lie_in_the_space(self) -> None:
        """Every configuration is a point of the search space."""
        space = parse_space(self.search_space)

        for job in self.ready().play(_ROUNDS):
            parameters = job["parameters"]
            own = self._own(parameters)
            assert contains(space, own), parameters
            assert self.extra_keys <= parameters.keys()

    def test_configurations_keep_the_constraints(self) -> None:
        """No configuration breaks a constraint of the search space, whatever is imported."""
        if not self.keeps_constraints:
            return
        declared = constrained_space(self.search_space)
        space, free = parse_space(declared), parse_space(self.search_space)
        driver = AdvisorDriver(self.make(0), declared, self._score)
        outside = [free.draw(Random(seed)) for seed in range(_IMPORTED)]

        driver.import_data([{"parameter": c, "value": self._score(c)} for c in outside])

        for job in driver.play(_ROUNDS, concurrency=2):
            parameters = job["parameters"]
            own = self._own(parameters)
            assert contains(space, own), parameters

    def test_parameter_ids_are_unique(self) -> None:
        """No two jobs have the same name."""
        names = [json.dumps(job["parameter_id"]) for job in self.ready().play(_ROUNDS)]

        assert len(set(names)) == len(names)

    def test_same_seed_and_calls_give_the_same_jobs(self) -> None:
        """A new advisor with the same inputs repeats itself."""
        first = list(self.ready(seed=7).play(_ROUNDS, concurrency=3))

        assert list(self.ready(seed=7).play(_ROUNDS, concurrency=3)) == first

    def test_no_request_is_forgotten(self) -> None:
        """After any number of results there are as many jobs as were requested."""
        driver = self.ready()
        asked, started = 5, driver.request(5)
        running = deque(started)
        for _ in range(_ROUNDS):
            job = running.popleft()
            driver.report(job, self._score(job["parameters"]))
            driver.end(job)
            new = driver.request(1)
            asked += 1
            started += new
            running += new

        while len(started) < asked:  # those that wait for results
            job = running.popleft()
            driver.report(job, self._score(job["parameters"]))
            driver.end(job)
            started += driver.sent
            running += driver.sent
            driver.sent.clear()
        assert len(started) == asked

    def test_failed_trials_do_not_stop_it(self) -> None:
        """Trials without a result leave it able to propose."""
        driver = self.ready()
        for _ in range(_ROUNDS):
            (job,) = driver.request()
            driver.end(job, "FAILED")

    def test_trials_may_end_in_any_order(self) -> None:
        """Trials that run at the same time may end in any order."""
        driver = self.ready()
        running = driver.request(6)
        for _ in range(_ROUNDS):
            job = running.pop()
            driver.report(job, self._score(job["parameters"]))
            driver.end(job)
            running += driver.request(1)

    def test_intermediate_results_and_duplicates_are_survived(self) -> None:
        """Intermediate reports and repeated results are no error."""
        driver = self.ready()
        (job,) = driver.request()
        driver.report(job, 0.1, MetricType.PERIODICAL)
        driver.report(job, 0.2)
        driver.report(job, 0.3)
        driver.end(job)
        driver.end(job)
        driver.report(job, 0.4)

        assert driver.request()

    def test_metrics_that_are_no_numbers_are_survived(self) -> None:
        """NaN, infinities and odd dicts are legal to report."""
        driver = self.ready()
        for value in (math.nan, math.inf, {"default": math.nan}, {"loss": 1}, "text", None):
            (job,) = driver.request()
            driver.report(job, value)
            driver.end(job)

        assert driver.request()

    def test_takes_the_default_of_a_dict_metric(self) -> None:
        """A dict metric counts with its `default`: the jobs are those of plain numbers."""
        plain, wrapped = self.ready(), self.ready()
        for _ in range(_ROUNDS):
            (left,), (right,) = plain.request(), wrapped.request()
            assert left == right
            plain.report(left, self._score(left["parameters"]))
            wrapped.report(right, {"default": self._score(right["parameters"]), "other": 1})
            plain.end(left)
            wrapped.end(right)

    def test_unknown_metric_types_are_refused(self) -> None:
        """A metric of an unknown type is a `ValueError`."""
        driver = self.ready()
        (job,) = driver.request()
        try:
            driver.report(job, 0.5, "NO_SUCH_TYPE")
        except ValueError:
            return
        raise AssertionError("a metric of an unknown type was accepted")

    def test_imported_samples_are_survived(self) -> None:
        """Imported samples of any quality leave it able to propose."""
        donor = self.ready(seed=1)
        good = [
            {"parameter": job["parameters"], "value": self._score(job["parameters"])}
            for job in donor.play(10)
        ]
        bad = [
            {"parameter": {"no such name": 1}, "value": 1.0},
            {"parameter": good[0]["parameter"], "value": None},
            {"parameter": None, "value": 1.0},
        ]
        driver = self.ready()

        driver.import_data([*good, *bad])
        driver.import_data([])

        assert list(driver.play(_ROUNDS))

    def test_a_search_space_may_be_given_again(self) -> None:
        """An advisor that gets the same space again, with a trial open, continues to propose."""
        driver = self.ready()
        (job,) = driver.request()

        driver.update_search_space(self.search_space)
        driver.report(job, 0.5)
        driver.end(job)

        assert driver.request()
