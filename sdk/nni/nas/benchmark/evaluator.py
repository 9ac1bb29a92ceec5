"""Evaluators that look results up in a benchmark instead of training."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import nni
from nni.mutable import Categorical, CategoricalMultiple, ExpressionConstraint, Mutable, Sample
from nni.mutable.expression import apply
from nni.nas.benchmark.database import Row
from nni.nas.benchmark.nasbench101.constants import (
    CONV1X1_BN_RELU,
    CONV3X3_BN_RELU,
    MAXPOOL3X3,
)
from nni.nas.benchmark.nasbench101.pruning import MAX_VERTICES, is_valid, pruned
from nni.nas.benchmark.nasbench101.query import query_nb101_trial_stats
from nni.nas.benchmark.nasbench201.constants import EDGES, PRIMITIVES
from nni.nas.benchmark.nasbench201.query import query_nb201_trial_stats
from nni.nas.benchmark.spaces import SlimBenchmarkSpace, labels_by_name
from nni.nas.evaluator.base import Evaluator

_PERCENT: Final = 0.01


class BenchmarkEvaluator(Evaluator):
    """Base of evaluators that report recorded results of an architecture, without training.

    A model is a sample, as `BenchmarkModelSpace` and `SlimBenchmarkSpace` have it, or an executable
    model with a `sample`. Of several recorded trainings one is drawn at random.

    Args:
        metric: field of the results that is reported; accuracies (`..._acc`) are reported as
            numbers from 0 to 1, others as they are.
        include_intermediates: report the course of the training, too.
        seed: seed of the draws; None for another one in each process.

    Examples:
        >>> class Constant(BenchmarkEvaluator):
        ...     def default_space(self):
        ...         return SlimBenchmarkSpace({"x": nni.choice("x", [1, 2])})
        ...     def names(self):
        ...         return ["x"]
        ...     def trials(self, sample):
        ...         return [{"valid_acc": 50.0 * sample["x"]}]
        >>> Constant().evaluate({"x": 2})
        [...] INFO (nni) Final result: 1.0
        1.0
    """

    def __init__(
        self,
        metric: str = "valid_acc",
        include_intermediates: bool = False,  # noqa: FBT001, FBT002 - NNI's signature
        seed: int | None = None,
    ) -> None:
        self.metric = metric
        self.include_intermediates = include_intermediates
        self._random = random.Random(seed)

    @abstractmethod
    def default_space(self) -> SlimBenchmarkSpace:
        """Return the space of the benchmark, without networks.

        Returns:
            A new space.
        """

    @abstractmethod
    def names(self) -> Sequence[str]:
        """Return the names that the labels of a space must end in.

        Returns:
            Names of the choices of an architecture.
        """

    @abstractmethod
    def trials(self, sample: Sample) -> list[Row]:
        """Return the recorded trainings of an architecture.

        Args:
            sample: value of each name, without what precedes it in labels.

        Returns:
            Rows with the metric, and `intermediates` if they are to be reported.
        """

    def validate_space(self, model_space: Mutable) -> None:
        """Raise ValueError unless a space has a choice for each name of the benchmark.

        Args:
            model_space: any space.

        Raises:
            ValueError: a name is missing, or several labels have it.
        """
        labels = [str(label) for label in model_space.simplify()]
        found = labels_by_name(labels, self.names())
        missing = [name for name in self.names() if name not in found]
        if missing:
            raise ValueError(
                f"the space must have labels that end in {', '.join(missing)}, as architectures of "
                f"{type(self).__name__} have; it has {labels}"
            )

    def evaluate(self, model: Any) -> float:  # noqa: ANN401 - a sample, or a model that has one
        """Report one recorded training, drawn at random; return its last metric (accuracy: 0 to 1).

        Args:
            model: sample, or executable model with a sample.

        Returns:
            The final metric.

        Raises:
            TypeError: the model is neither, such as a network.
            LookupError: the benchmark has no training of this architecture.
        """
        sample = model if isinstance(model, Mapping) else getattr(model, "sample", None)
        if sample is None:
            raise TypeError(
                "model must be a sample or have one, as those of BenchmarkModelSpace and "
                f"SlimBenchmarkSpace do, got {type(model).__name__}"
            )
        labels = labels_by_name(sample, self.names())
        trials = self.trials({name: sample[label] for name, label in labels.items()})
        if not trials:
            raise LookupError(f"{type(self).__name__} has no training of {dict(sample)}")
        trial = self._random.choice(trials)
        for one in trial.get("intermediates", ()):
            if one[self.metric] is not None:  # it was not evaluated after every epoch
                nni.report_intermediate_result(self._scaled(one[self.metric]))
        final = self._scaled(trial[self.metric])
        nni.report_final_result(final)
        return final

    def _scaled(self, value: float) -> float:
        return value * _PERCENT if self.metric.endswith("_acc") else value


@nni.trace
class NasBench101Benchmark(BenchmarkEvaluator):
    """Evaluator that reports a NAS-Bench-101 training of the model's cell.

    Args:
        num_epochs: schedule of the trainings: 4, 12, 36 or 108.
        metric: field of the results.
        include_intermediates: report the course of the training, too.
        seed: seed of the draws among three trainings; None for another one in each process.

    Examples:
        >>> sorted(NasBench101Benchmark().default_space().simplify())[:3]
        ['final', 'input1', 'input2']
    """

    def __init__(
        self,
        num_epochs: int = 108,
        metric: str = "valid_acc",
        include_intermediates: bool = False,  # noqa: FBT001, FBT002 - NNI's signature
        seed: int | None = None,
    ) -> None:
        super().__init__(metric, include_intermediates, seed)
        self.num_epochs = num_epochs

    def default_space(self) -> SlimBenchmarkSpace:
        """Return the space of cells of up to 7 vertices and 9 edges, as `nni.nas.hub` has them."""
        vertices = Categorical(list(range(2, MAX_VERTICES + 1)), label="num_nodes")
        operations = [
            Categorical([CONV3X3_BN_RELU, CONV1X1_BN_RELU, MAXPOOL3X3], label=f"op{at}")
            for at in range(1, MAX_VERTICES - 1)
        ]
        inputs = [
            CategoricalMultiple(list(range(at)), label=f"input{at}")
            for at in range(1, MAX_VERTICES)
        ]
        rule = ExpressionConstraint(apply(is_valid, [vertices, *inputs]), label="final")
        members = [vertices, *operations, *inputs, rule]
        return SlimBenchmarkSpace({str(one.label): one for one in members})

    def names(self) -> Sequence[str]:
        """Return the names `num_nodes`, `op1` to `op5` and `input1` to `input6`."""
        return (
            "num_nodes",
            *(f"op{at}" for at in range(1, MAX_VERTICES - 1)),
            *(f"input{at}" for at in range(1, MAX_VERTICES)),
        )

    def trials(self, sample: Sample) -> list[Row]:
        """Return the recorded trainings of all cells that are isomorphic to a sample's."""
        return list(
            query_nb101_trial_stats(
                pruned(sample),
                self.num_epochs,
                include_intermediates=self.include_intermediates,
            )
        )


@nni.trace
class NasBench201Benchmark(BenchmarkEvaluator):
    """Evaluator that reports a NAS-Bench-201 training of the model's cell.

    Args:
        num_epochs: schedule of the trainings: 12 or 200.
        dataset: `cifar10-valid`, `cifar10`, `cifar100` or `imagenet16-120`.
        metric: field of the results.
        include_intermediates: report the course of the training, too.
        seed: seed of the draws among trainings; None for another one in each process.

    Examples:
        >>> list(NasBench201Benchmark().default_space().simplify())
        ['0_1', '0_2', '1_2', '0_3', '1_3', '2_3']
    """

    def __init__(
        self,
        num_epochs: int = 200,
        dataset: str = "cifar100",
        metric: str = "valid_acc",
        include_intermediates: bool = False,  # noqa: FBT001, FBT002 - NNI's signature
        seed: int | None = None,
    ) -> None:
        super().__init__(metric, include_intermediates, seed)
        self.num_epochs = num_epochs
        self.dataset = dataset

    def default_space(self) -> SlimBenchmarkSpace:
        """Return the space of all 15,625 cells: one of 5 operations for each edge."""
        return SlimBenchmarkSpace(
            {edge: Categorical(list(PRIMITIVES), label=edge) for edge in EDGES}
        )

    def names(self) -> Sequence[str]:
        """Return the names of the edges."""
        return EDGES

    def trials(self, sample: Sample) -> list[Row]:
        """Return the recorded trainings of a sample's cell on the evaluator's data set."""
        return list(
            query_nb201_trial_stats(
                sample,
                self.num_epochs,
                self.dataset,
                include_intermediates=self.include_intermediates,
            )
        )
