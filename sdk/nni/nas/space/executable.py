"""Contract of executable models: a model space with its evaluator, in one of several formats."""

import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Protocol, Self

from nni.mutable import LabeledMutable, Mutable, Sample, SampleValidationError
from nni.nas.space.base import BaseModelSpace
from nni.nas.space.metrics import Metrics
from nni.nas.space.status import ModelStatus

__all__ = ["ExecutableModelSpace", "ModelEvaluator"]


class ModelEvaluator(Protocol):
    """Interface of evaluators of models, such as `nni.nas.evaluator.Evaluator`.

    Examples:
        >>> class Constant:
        ...     def evaluate(self, model):
        ...         return 1.0
        >>> evaluator: ModelEvaluator = Constant()
        >>> evaluator.evaluate(None)
        1.0
    """

    def evaluate(self, model: Any) -> Any:  # noqa: ANN401 - any network
        """Train or measure a network, and report its metrics; the returned value is not used.

        Args:
            model: the network.

        Returns:
            Anything; metrics are reported.
        """


class ExecutableModelSpace(BaseModelSpace):
    """Model space with its evaluator, or one frozen model: sample, status and metrics.

    The mutables of the evaluator are dimensions of the space, too, and their labels occur in
    samples. `freeze` returns a copy for one sample; that one has no mutables, and can be executed.
    An instance is changed by one thread at a time.

    A subclass implements `from_model`, `freeze` and `executable_model`, and yields the leaves of
    the model by `model_leaves`.

    Args:
        evaluator: what evaluates networks; None if something else does.
        status: state of the model.

    Attributes:
        evaluator: what evaluates networks.
        metrics: metrics that were reported for this model.
        sample: value of each label; None if the model is not frozen.

    Examples:
        >>> from torch import nn
        >>> from nni.nas.nn.pytorch import LayerChoice, ModelSpace
        >>> from nni.nas.space import RawFormatModelSpace
        >>> class Net(ModelSpace):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = LayerChoice([nn.ReLU(), nn.Tanh()], label="layer")
        >>> space = RawFormatModelSpace.from_model(Net())
        >>> model = space.freeze({"layer": 1})
        >>> model.sample, model.status, model.executable_model().layer
        ({'layer': 1}, <ModelStatus.Frozen: 'frozen'>, Tanh())
    """

    def __init__(
        self,
        evaluator: ModelEvaluator | None = None,
        *,
        status: ModelStatus | str = ModelStatus.Initialized,
    ) -> None:
        self.evaluator = evaluator
        self.metrics = Metrics()
        self.sample: Sample | None = None
        self._status = ModelStatus(status)
        self._built: weakref.ref[Any] | None = None

    @classmethod
    @abstractmethod
    def from_model(
        cls,
        model_space: Any,  # noqa: ANN401 - a mutable module, usually
        evaluator: ModelEvaluator | None = None,
        **options: Any,  # noqa: ANN401 - of the format
    ) -> Self:
        """Return an executable space of this format for a model space and an evaluator.

        Args:
            model_space: the network with its choices.
            evaluator: what evaluates networks of the space.
            **options: options of the format.

        Returns:
            A new space, whose status is `initialized`.
        """

    @abstractmethod
    def freeze(self, sample: Sample) -> Self:
        """Return the model of a sample; this space stays as it is.

        Args:
            sample: value of each label.

        Returns:
            A new object, whose status is `frozen`.

        Raises:
            nni.mutable.SampleValidationError: the sample is not contained in the space.
            RuntimeError: the status of this object is not `initialized`.
        """

    @abstractmethod
    def build_model(self) -> Any:  # noqa: ANN401 - a module, usually
        """Return the network of the sample; without a sample, the whole space.

        Returns:
            The network of the sample; the whole space if there is none.
        """

    @abstractmethod
    def model_leaves(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield the leaves of the model, without those of the evaluator.

        Args:
            is_leaf: see `nni.mutable.Mutable.leaf_mutables`.

        Returns:
            The leaves.
        """

    @abstractmethod
    def check_model(self, sample: Sample) -> SampleValidationError | None:
        """Return why a sample does not fit the model, None if it does.

        Args:
            sample: value of each label.

        Returns:
            The error.
        """

    @property
    def status(self) -> ModelStatus:
        """State of the model; engines and strategies set it."""
        return self._status

    @status.setter
    def status(self, status: ModelStatus | str) -> None:
        self._status = ModelStatus(status)

    @property
    def metric(self) -> Any:  # noqa: ANN401 - of any type if metrics are not strict
        """Final metric, None while there is none."""
        return self.metrics.final

    def executable_model(self) -> Any:  # noqa: ANN401 - a module, usually
        """Return the network of this model, built anew unless an earlier one is in use.

        It is built at the first call, and again at a later one if no reference to it is left: the
        model itself keeps none, so that thousands of them can be held.

        Returns:
            The network of the sample; of an unfrozen space, the whole space.
        """
        built = None if self._built is None else self._built()
        if built is None:
            built = self.build_model()
            self._built = weakref.ref(built)
        return built

    def execute(self) -> Any:  # noqa: ANN401 - what the evaluator returns
        """Evaluate the network; return the evaluator's result; raise without an evaluator.

        Returns:
            What the evaluator returns; metrics reach the caller by reports.

        Raises:
            ValueError: there is no evaluator.
        """
        if self.evaluator is None:
            raise ValueError(
                "a model without an evaluator cannot be executed: pass one, as in "
                f"{type(self).__name__}.from_model(model_space, evaluator)"
            )
        return self.evaluator.evaluate(self.executable_model())

    def take_result(self, metric: object) -> object:
        """Return the metric of a result that a trial reported; by default the result itself.

        A model that is more than one network takes from it what it has found.

        Args:
            metric: as reported.

        Returns:
            A number, or a dict with `default`.
        """
        return metric

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield the leaves of the model, then those of the evaluator; none if frozen."""
        if self.sample is None:
            yield from self.model_leaves(is_leaf)
            evaluator = as_mutable(self.evaluator)
            if evaluator is not None:
                yield from evaluator.leaf_mutables(is_leaf)

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why a sample does not fit model or evaluator; None if it fits, or if frozen."""
        if self.sample is not None:
            return None
        error = self.check_model(sample)
        evaluator = as_mutable(self.evaluator)
        if error is None and evaluator is not None:
            error = evaluator.check_contains(sample)
            return None if error is None else error.inside("evaluator")
        return error

    def check_freezable(self, sample: Sample) -> None:
        """Raise unless the space is not frozen and contains a sample; subclasses begin with it.

        Args:
            sample: value of each label.

        Raises:
            RuntimeError: the status is not `initialized`.
            nni.mutable.SampleValidationError: the sample is not contained in the space.
        """
        if self.status is not ModelStatus.Initialized:
            raise RuntimeError(
                f"only a space whose status is {ModelStatus.Initialized} can be frozen, this one "
                f"is {self.status}; freeze the space that it came from"
            )
        self.validate(sample)

    def frozen_evaluator(self, sample: Sample) -> ModelEvaluator | None:
        """Return the evaluator with a sample's values: itself if it has no mutables.

        Args:
            sample: value of each label.

        Returns:
            The evaluator; None if there is none.
        """
        evaluator = as_mutable(self.evaluator)
        if evaluator is not None and evaluator.simplify():
            frozen: ModelEvaluator = evaluator.freeze(sample)
            return frozen
        return self.evaluator

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy with metrics and a network of its own; the space is shared."""
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        vars(copied).update(vars(self))
        copied.metrics = Metrics._load(**self.metrics._dump())  # noqa: SLF001 - its copy
        copied.sample = None if self.sample is None else dict(self.sample)
        vars(copied)["_built"] = None
        return copied

    def __repr__(self) -> str:
        parts = [f"status={self.status.value!r}"]
        if self.sample is not None:
            plain = {str(label): value for label, value in self.sample.items()}
            parts.append(f"sample={plain!r}")
        if self.metric is not None:
            parts.append(f"metric={self.metric!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


def as_mutable(evaluator: object) -> Mutable | None:
    """Return an evaluator if its arguments may be mutable, None otherwise.

    Args:
        evaluator: any object.
    """
    return evaluator if isinstance(evaluator, Mutable) else None
