"""Contract of evaluators, and evaluators whose arguments are part of the search."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from nni.common.serializer import SerializableObject, is_traceable
from nni.mutable import LabeledMutable, Mutable, Sample, SampleValidationError
from nni.nas.evaluator.traced_tree import frozen_call, mutables_in
from nni.nas.evaluator.trial_reports import reports_to
from nni.trial.settings import in_experiment
from nni.trial.standalone import StandaloneTrialChannel


class Evaluator(ABC):
    """Base of evaluators, which train and validate one model and report its metrics.

    Metrics are reported by `nni.report_intermediate_result` and `nni.report_final_result`, as in
    any trial; they are maximised. An evaluator is used for one model after another, in one thread.

    Examples:
        >>> import nni
        >>> class Width(Evaluator):
        ...     def evaluate(self, model):
        ...         nni.report_final_result(len(model))
        >>> evaluator = Width()
        >>> with evaluator.mock_runtime("model"):
        ...     evaluator.evaluate(nni.get_current_parameter())
        [...] INFO (nni) Final result: 5
    """

    @abstractmethod
    def evaluate(self, model: Any) -> Any:  # noqa: ANN401 - a network of any framework
        """Train and validate a model, and report its metrics.

        Args:
            model: the network.

        Returns:
            Whatever the evaluator returns; searches use the reported metrics.
        """

    @staticmethod
    @contextmanager
    def mock_runtime(model: Any) -> Iterator[None]:  # noqa: ANN401 - an executable model
        """Let the trial API return a model and print reports within a block, to try an evaluator.

        Metrics are printed, as outside an experiment.

        Args:
            model: what `nni.get_next_parameter` and `nni.get_current_parameter` return.

        Yields:
            Nothing.

        Raises:
            RuntimeError: this process is a trial, whose parameters come from an experiment.
        """
        if in_experiment():
            raise RuntimeError(
                "mock_runtime must not be used in a trial, which gets its model from the search"
            )
        printed = StandaloneTrialChannel()
        with reports_to(
            model,
            lambda metric: printed.report("PERIODICAL", metric),
            lambda metric: printed.report("FINAL", metric),
        ):
            yield


class MutableEvaluator(Evaluator, Mutable):
    """Evaluator whose arguments may be mutables: dimensions of the search beside the model's.

    A subclass is decorated by `nni.trace`. Mutables may occur among its arguments and, at any
    depth, among those of traced objects, in lists and dicts. The constructor gets their defaults.
    `freeze` returns the evaluator of a sample, which is built when it is used.

    Examples:
        >>> import nni
        >>> @nni.trace
        ... class Training(MutableEvaluator):
        ...     def __init__(self, rate):
        ...         self.rate = rate
        ...     def evaluate(self, model):
        ...         return self.rate
        >>> evaluator = Training(nni.choice("rate", [0.1, 0.2]))
        >>> evaluator.rate, evaluator.is_mutable(), list(evaluator.simplify())
        (0.1, True, ['rate'])
        >>> evaluator.freeze({"rate": 0.2}).evaluate(None)
        0.2
    """

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield the dimensions among the arguments, in the order of the arguments."""
        for _, mutable in self._mutables():
            yield from mutable.leaf_mutables(is_leaf)

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return the error of a sample that does not fit the mutable arguments, None if it does."""
        for path, mutable in self._mutables():
            error = mutable.check_contains(sample)
            if error is not None:
                return error.inside(path)
        return None

    def freeze(self, sample: Sample) -> "FrozenEvaluator":
        """Validate a sample; return the evaluator with its values, built at first use.

        Raises:
            TypeError: the class of this evaluator is not decorated by `nni.trace`.
        """
        self.validate(sample)
        if not is_traceable(self, must_be_instance=True):
            raise TypeError(
                f"{type(self).__name__} must be decorated by nni.trace, so that it can be built "
                "for each sample"
            )
        return FrozenEvaluator(frozen_call(self, sample))

    def is_mutable(self) -> bool:
        """Return whether an argument of the evaluator is mutable, and so differs by model.

        Returns:
            False for an evaluator that is the same for all models.
        """
        return next(self._mutables(), None) is not None

    def _mutables(self) -> Iterator[tuple[str, Mutable]]:
        if is_traceable(self, must_be_instance=True):
            yield from mutables_in(self)

    def _unwrap_parameter(self) -> "MutableEvaluator":
        """Return the evaluator itself: as an argument of a traced call it is no value to choose."""
        return self


class FrozenEvaluator(Evaluator):
    """Evaluator with the arguments of a sample, built when first used.

    `nni.dump` writes the call, so that `nni.load` returns the evaluator itself.

    Args:
        call: the call that makes the evaluator.

    Attributes:
        trace_symbol: class of the evaluator.
        trace_args: its positional arguments.
        trace_kwargs: its named arguments.

    Examples:
        >>> import nni
        >>> from nni.nas.evaluator import FunctionalEvaluator
        >>> evaluator = FunctionalEvaluator(round, ndigits=nni.choice("digits", [0, 1]))
        >>> frozen = evaluator.freeze({"digits": 1})
        >>> frozen.trace_kwargs["ndigits"], frozen.evaluate(0.25)
        (1, 0.2)
    """

    def __init__(self, call: SerializableObject) -> None:
        self._call = call
        self._made: Evaluator | None = None
        self.trace_symbol = call.trace_symbol
        self.trace_args = call.trace_args
        self.trace_kwargs = call.trace_kwargs

    def trace_copy(self) -> SerializableObject:
        """Return the call that makes the evaluator, with arguments that can be changed.

        Returns:
            A new call.
        """
        return self._call.trace_copy()

    def get(self) -> Evaluator:
        """Build the evaluator at the first call; return the same object at every call.

        Returns:
            The same object at every call.
        """
        if self._made is None:
            self._made = self._call.get()
        assert self._made is not None
        return self._made

    def evaluate(self, model: Any) -> Any:  # noqa: ANN401 - a network of any framework
        """Evaluate a model by the frozen evaluator; return its result."""
        return self.get().evaluate(model)

    def __repr__(self) -> str:
        name = getattr(self.trace_symbol, "__qualname__", self.trace_symbol)
        return f"FrozenEvaluator({name}, {self.trace_kwargs})"


def check_can_evaluate(evaluator: object) -> None:
    """Raise TypeError unless an object is an instance with a method `evaluate`.

    Args:
        evaluator: an `Evaluator`, or another object with its method.

    Raises:
        TypeError: it is a class, or has no method `evaluate`.
    """
    if isinstance(evaluator, type) or not callable(getattr(evaluator, "evaluate", None)):
        raise TypeError(
            "evaluator must be an object with the method evaluate(model), such as "
            f"FunctionalEvaluator(train); got {evaluator!r:.200}"
        )
