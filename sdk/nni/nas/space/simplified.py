"""Format that travels: how to construct the model, and its mutables, as `SimplifiedModelSpace`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from nni.common.serializer import is_traceable
from nni.mutable import LabeledMutable, Mutable, Sample, SampleValidationError
from nni.mutable.record import marked, unmarked
from nni.nas.space.context import model_context
from nni.nas.space.executable import ExecutableModelSpace, ModelEvaluator
from nni.nas.space.metrics import Metrics
from nni.nas.space.status import ModelStatus

__all__ = ["SimplifiedModelSpace"]


class SimplifiedModelSpace(ExecutableModelSpace):
    """Model space as a recorded construction and a dict of mutables.

    It holds no weights: `executable_model` constructs the network of the sample from scratch.
    `nni.dump` writes it as JSON, of a few hundred bytes when frozen, from which another process
    makes the same network. The class of the model must be importable there.

    Args:
        model_symbol: class or function that constructs the space.
        model_args: its positional arguments.
        model_kwargs: its named arguments.
        mutables: leaves of the space by label.
        evaluator: what evaluates networks; None if something else does.

    Attributes:
        model_symbol: class or function that constructs the space.
        model_args: its positional arguments.
        model_kwargs: its named arguments.
        mutables: leaves of the space by label; empty if frozen.

    Examples:
        >>> import nni
        >>> from torch import nn
        >>> from nni.nas.nn.pytorch import LayerChoice, ModelSpace
        >>> class Net(ModelSpace):
        ...     def __init__(self, width):
        ...         super().__init__()
        ...         self.layer = LayerChoice([nn.ReLU(), nn.Linear(width, 1)], label="layer")
        >>> model = SimplifiedModelSpace.from_model(Net(4)).freeze({"layer": 1})
        >>> model.model_kwargs, model.executable_model()
        ({'width': 4}, Net(
          (layer): Linear(in_features=4, out_features=1, bias=True)
        ))
    """

    def __init__(
        self,
        model_symbol: Callable[..., Any],
        model_args: Iterable[Any],
        model_kwargs: Mapping[str, Any],
        mutables: Mapping[str, LabeledMutable],
        evaluator: ModelEvaluator | None = None,
    ) -> None:
        super().__init__(evaluator)
        self.model_symbol = model_symbol
        self.model_args = list(model_args)
        self.model_kwargs = dict(model_kwargs)
        self.mutables = dict(mutables)

    @classmethod
    def from_model(
        cls,
        model_space: Any,  # noqa: ANN401 - a traced mutable
        evaluator: ModelEvaluator | None = None,
        **options: Any,  # noqa: ANN401 - this format has none
    ) -> Self:
        """Return a space that holds the construction of the model, without its weights.

        Raises:
            TypeError: an option is given, which this format does not have; or `model_space` is no
                mutable that records its construction.
        """
        if options:
            raise TypeError(f"the simplified format has no options, got {', '.join(options)}")
        if not isinstance(model_space, Mutable) or not is_traceable(model_space):
            raise TypeError(
                f"model_space must be a ModelSpace, whose construction is recorded, got "
                f"{type(model_space).__name__}; derive the network from ModelSpace, or use the "
                "raw format"
            )
        return cls(
            model_space.trace_symbol,  # type: ignore[attr-defined]  # it is traceable
            model_space.trace_args,  # type: ignore[attr-defined]
            model_space.trace_kwargs,  # type: ignore[attr-defined]
            model_space.simplify(),
            evaluator,
        )

    def freeze(self, sample: Sample) -> Self:
        """Return the model of a sample; its network is constructed when it is needed."""
        self.check_freezable(sample)
        return self._with_sample(sample, ModelStatus.Frozen, self.frozen_evaluator(sample))

    def _with_sample(
        self, sample: Sample, status: ModelStatus | str, evaluator: ModelEvaluator | None
    ) -> Self:
        frozen = type(self)(self.model_symbol, self.model_args, self.model_kwargs, {}, evaluator)
        frozen.sample = dict(sample)
        frozen.status = ModelStatus(status)
        return frozen

    def build_model(self) -> Any:  # noqa: ANN401 - a module, usually
        """Return a new network of the sample; the space, constructed anew, if there is none."""
        if self.sample is None:
            return self.model_symbol(*self.model_args, **self.model_kwargs)
        with model_context(self.sample):
            return self.model_symbol(*self.model_args, **self.model_kwargs)

    def model_leaves(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield the leaves of the model."""
        for mutable in self.mutables.values():
            yield from mutable.leaf_mutables(is_leaf)

    def check_model(self, sample: Sample) -> SampleValidationError | None:
        """Return why a sample does not fit one of the leaves, None if it fits all."""
        for mutable in self.mutables.values():
            error = mutable.check_contains(sample)
            if error is not None:
                return error
        return None

    def _dump(self) -> dict[str, Any]:
        dumped = {
            "status": self.status.value,
            "model_symbol": self.model_symbol,
            "model_args": marked(self.model_args),
            "model_kwargs": marked(self.model_kwargs),
            "evaluator": self.evaluator,
        }
        if self.sample is None:
            return {**dumped, "mutables": {str(key): one for key, one in self.mutables.items()}}
        sample = {str(label): marked(value) for label, value in self.sample.items()}
        return {**dumped, "sample": sample, "metrics": self.metrics}

    @classmethod
    def _load(
        cls,
        *,
        sample: Mapping[str, Any] | None = None,
        metrics: Metrics | None = None,
        mutables: Mapping[str, LabeledMutable] | None = None,
        status: str = ModelStatus.Initialized.value,
        model_args: list[Any],
        model_kwargs: dict[str, Any],
        **parts: Any,  # noqa: ANN401 - other arguments of the constructor
    ) -> Self:
        space = cls(
            mutables=mutables or {},
            model_args=unmarked(model_args),
            model_kwargs=unmarked(model_kwargs),
            **parts,
        )
        if sample is None:
            return space
        chosen = {label: unmarked(value) for label, value in sample.items()}
        frozen = space._with_sample(chosen, status, space.evaluator)
        frozen.metrics = Metrics() if metrics is None else metrics
        return frozen
