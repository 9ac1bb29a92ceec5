"""Conformance suite of evaluators of architecture search; a subclass builds the evaluator."""

import math
from abc import ABC, abstractmethod
from typing import Any

import nni
from nni.common.serializer import is_traceable
from nni.nas.evaluator import Evaluator, MutableEvaluator
from nni.nas.evaluator.trial_reports import reports_to

Reports = tuple[list[Any], list[Any]]
"""Intermediate results, and results."""
_DEFAULT = "default"


class NasEvaluatorConformance(ABC):
    """Tests that every `nni.nas.evaluator.Evaluator` must pass; subclass it in a module of tests.

    An evaluation must be repeatable: `make_model` returns equal models, and the evaluator seeds
    what it draws.

    Examples:
        >>> from nni.nas.evaluator import FunctionalEvaluator
        >>> class TestMyEvaluator(NasEvaluatorConformance):
        ...     def make(self):
        ...         return FunctionalEvaluator(nni.report_final_result)
        ...     def make_model(self):
        ...         return 0.5
        >>> TestMyEvaluator().test_one_result_is_reported()
    """

    @abstractmethod
    def make(self) -> Evaluator:
        """Return a new evaluator without mutable arguments."""

    @abstractmethod
    def make_model(self) -> Any:  # noqa: ANN401 - a network of any framework
        """Return a new model, always the same."""

    def mutable_cases(self) -> list[tuple[MutableEvaluator, dict[str, Any]]]:
        """Return evaluators with mutable arguments, each with a sample of them.

        Override it for evaluators whose arguments may be mutable.
        """
        return []

    def test_one_result_is_reported(self) -> None:
        """Each evaluation ends with one result, a number or a dict with a number as `default`."""
        _, finals = self._reports(self.make())

        assert len(finals) == 1
        _check_metric(finals[0])

    def test_intermediate_results_are_metrics(self) -> None:
        """Intermediate results are numbers, or dicts with a number as `default`."""
        intermediates, _ = self._reports(self.make())

        for metric in intermediates:
            _check_metric(metric)

    def test_one_evaluator_evaluates_models_in_turn(self) -> None:
        """The second of two equal models has the same results: no state is left of the first."""
        evaluator = self.make()

        first, second = self._reports(evaluator), self._reports(evaluator)

        assert first == second

    def test_the_evaluator_travels(self) -> None:
        """The evaluator is traced; a dumped and loaded copy reports the same."""
        evaluator = self.make()

        loaded = nni.load(nni.dump(evaluator, pickle_size_limit=0))

        assert is_traceable(evaluator, must_be_instance=True)
        assert self._reports(loaded) == self._reports(evaluator)

    def test_the_record_is_not_changed_by_an_evaluation(self) -> None:
        """The dump of the evaluator is the same before and after an evaluation."""
        evaluator = self.make()
        before = nni.dump(evaluator, pickle_size_limit=0)

        self._reports(evaluator)

        assert nni.dump(evaluator, pickle_size_limit=0) == before

    def test_mutable_arguments_are_dimensions_and_a_frozen_one_has_none(self) -> None:
        """The sample names all dimensions; the frozen evaluator can be used."""
        fixed = self.make()
        assert not isinstance(fixed, MutableEvaluator) or not fixed.is_mutable()
        for evaluator, sample in self.mutable_cases():
            frozen = evaluator.freeze(sample)
            assert set(evaluator.simplify()) == set(sample)
            assert not frozen.trace_copy().get().is_mutable()
            assert len(self._reports(frozen)[1]) == 1

    def _reports(self, evaluator: Evaluator) -> Reports:
        intermediates: list[Any] = []
        finals: list[Any] = []
        with reports_to(None, intermediates.append, finals.append):
            evaluator.evaluate(self.make_model())
        return intermediates, finals


def _check_metric(metric: Any) -> None:  # noqa: ANN401 - what was reported
    value = metric[_DEFAULT] if isinstance(metric, dict) else metric
    assert isinstance(value, int | float), f"a metric is a number, got {metric!r}"
    assert math.isfinite(value)
