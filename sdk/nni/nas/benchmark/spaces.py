"""Model spaces whose models are samples: the benchmark knows their results without networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from nni.mutable import LabeledMutable, Mutable, Sample, SampleValidationError
from nni.nas.space.base import BaseModelSpace
from nni.nas.space.executable import ModelEvaluator
from nni.nas.space.raw import RawFormatModelSpace


class BenchmarkSample(dict[str, Any]):
    """Dict of a sample, which benchmark evaluators take in place of a network.

    Examples:
        >>> BenchmarkSample({"cell/0_1": "none"})["cell/0_1"]
        'none'
    """


class SlimBenchmarkSpace(BaseModelSpace):
    """Model space without a network: mutables by label; its models are samples.

    Args:
        mutables: mutables of the space; the keys are for the caller, the labels count.

    Examples:
        >>> import nni
        >>> space = SlimBenchmarkSpace({"edge": nni.choice("edge", ["none", "conv_1x1"])})
        >>> space.freeze({"edge": "none"}), len(list(space.grid()))
        ({'edge': 'none'}, 2)
    """

    def __init__(self, mutables: Mapping[str, Mutable]) -> None:
        self.mutables = dict(mutables)

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterator[LabeledMutable]:
        """Yield the leaves of all mutables, in order."""
        for mutable in self.mutables.values():
            yield from mutable.leaf_mutables(is_leaf)

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return the first error of a mutable, None if the sample fits all."""
        errors = (mutable.check_contains(sample) for mutable in self.mutables.values())
        return next((error for error in errors if error is not None), None)

    def freeze(self, sample: Sample) -> BenchmarkSample:
        """Validate a sample; return a copy of it as `BenchmarkSample`.

        Args:
            sample: value of each label.

        Returns:
            A copy, which evaluators of benchmarks take.

        Raises:
            nni.mutable.SampleValidationError: the sample is not contained in the space.
        """
        self.validate(sample)
        return BenchmarkSample(sample)


class BenchmarkModelSpace(RawFormatModelSpace):
    """Executable space of any model space; its models are samples, no network is built.

    Args:
        model_space: the space, which may have networks; None for that of the evaluator.
        evaluator: evaluator of a benchmark.

    Raises:
        TypeError: there is neither a space nor an evaluator with one.
        ValueError: the space lacks labels that the evaluator needs.

    Examples:
        >>> from nni.nas.benchmark import NasBench201Benchmark
        >>> space = BenchmarkModelSpace(None, NasBench201Benchmark())
        >>> model = space.freeze(space.default_sample())
        >>> model.executable_model()["0_1"]
        'none'
    """

    def __init__(self, model_space: Any = None, evaluator: ModelEvaluator | None = None) -> None:  # noqa: ANN401 - any mutable
        if model_space is None:
            default_space = getattr(evaluator, "default_space", None)
            if default_space is None:
                raise TypeError(
                    "model_space must be given, or an evaluator that has a default_space, got "
                    f"{evaluator!r}"
                )
            model_space = default_space()
        super().__init__(model_space, evaluator)
        validate = getattr(evaluator, "validate_space", None)
        if validate is not None:
            validate(model_space)

    @classmethod
    def from_model(
        cls,
        model_space: Any,  # noqa: ANN401 - any mutable
        evaluator: ModelEvaluator | None = None,
        **options: Any,  # noqa: ANN401 - this format has none
    ) -> Self:
        """Return an executable space of a model space; raise TypeError for options.

        Raises:
            TypeError: an option is given, which this format does not have.
        """
        if options:
            raise TypeError(f"the benchmark format has no options, got {', '.join(options)}")
        return cls(model_space, evaluator)

    def freeze(self, sample: Sample) -> Self:
        """Return a frozen copy of the executable space for a sample, which it checks."""
        frozen = RawFormatModelSpace.freeze(self, sample)
        assert isinstance(frozen, type(self))
        return frozen

    def build_model(self) -> Any:  # noqa: ANN401 - a sample, or the space
        """Return the sample in place of a network; the model space if it is not frozen."""
        return self.model_space if self.sample is None else BenchmarkSample(self.sample)


def labels_by_name(labels: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Return labels by the names that they equal, or end in after `/`; raise if two share one.

    Args:
        labels: labels of a space or of a sample.
        names: names that a benchmark needs.

    Returns:
        Name to label; a name without a label is left out.

    Raises:
        ValueError: several labels have one name.

    Examples:
        >>> labels_by_name(["model/cell/0_1", "depth"], ["0_1", "0_2"])
        {'0_1': 'model/cell/0_1'}
    """
    wanted = set(names)
    found: dict[str, str] = {}
    for label in map(str, labels):
        name = label.rpartition("/")[2]
        if name in wanted:
            if name in found:
                raise ValueError(
                    f"the space must have one cell, but {name!r} is the end of the labels "
                    f"{found[name]!r} and {label!r}"
                )
            found[name] = label
    return found
