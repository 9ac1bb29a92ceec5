"""Mutators: code that changes the graph of a model, and asks a sampler for each choice."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Self

from nni.mutable import (
    Categorical,
    LabeledMutable,
    Mutable,
    Sample,
    SampleMissingError,
    SampleValidationError,
)
from nni.mutable.base import RandomState
from nni.mutable.labels import SEPARATOR, Label
from nni.nas.space.status import ModelStatus

__all__ = [
    "InvalidMutation",
    "Mutation",
    "MutationSampler",
    "Mutator",
    "MutatorSequence",
    "StationaryMutator",
]

Model = Any
"""A `GraphModelSpace`, which this module does not know."""

_SEEDS: Final = 2**32
_UNNAMED: Final = "mutation"
"""Label of a mutator without one, until a sequence numbers it."""


class InvalidMutation(SampleValidationError):
    """Error: a mutation has no valid result; raised in `Mutator.mutate`, it rejects the sample.

    Examples:
        >>> issubclass(InvalidMutation, ValueError)
        True
    """


class MutationSampler:
    """Base of samplers, which decide on the choices of mutators; it takes the first ones.

    Examples:
        >>> class Last(MutationSampler):
        ...     def choice(self, candidates, mutator, model, index):
        ...         return candidates[-1]
        >>> Last().choice([1, 2], None, None, 0)
        2
    """

    def choice(self, candidates: Sequence[Any], mutator: Mutator, model: Model, index: int) -> Any:  # noqa: ANN401 - a candidate
        """Return one of several candidates; the base class returns the first.

        Args:
            candidates: the candidates.
            mutator: mutator that asks.
            model: model that is being changed.
            index: number of choices that the mutator has asked for before, in this application.

        Returns:
            One of the candidates.
        """
        del mutator, model, index
        return candidates[0]

    def mutation_start(self, mutator: Mutator, model: Model) -> None:
        """Prepare for the choices of a mutator; by default do nothing.

        Args:
            mutator: mutator that begins.
            model: model that it will change.
        """

    def mutation_end(self, mutator: Mutator, model: Model) -> None:
        """Finish after the choices of a mutator; by default do nothing.

        Args:
            mutator: mutator that has ended.
            model: model that it has changed.
        """


@dataclass(frozen=True)
class FirstChoices(MutationSampler):
    """Sampler of the first candidates; all samplers of this class are equal."""

    def _dump(self) -> dict[str, Any]:
        return {}

    @classmethod
    def _load(cls) -> Self:
        return cls()


@dataclass(frozen=True)
class RandomChoices(MutationSampler):
    """Sampler of random candidates, determined by its seed and the index of the choice."""

    seed: int
    """Seed of the draws."""

    def choice(self, candidates: Sequence[Any], mutator: Mutator, model: Model, index: int) -> Any:  # noqa: ANN401 - a candidate
        """Return a candidate that seed and index decide on."""
        del mutator, model
        return random.Random(f"{self.seed} {index}").choice(candidates)

    def _dump(self) -> dict[str, Any]:
        return {"seed": self.seed}

    @classmethod
    def _load(cls, *, seed: int) -> Self:
        return cls(seed)


@dataclass(frozen=True)
class _FixedChoices(MutationSampler):
    """Sampler of the values of a sample, by their labels; raises if they are no candidates."""

    values: Callable[[int], Any]
    """Function from the index of the choice to its value."""

    def choice(self, candidates: Sequence[Any], mutator: Mutator, model: Model, index: int) -> Any:  # noqa: ANN401 - a candidate
        value = self.values(index)
        if value not in candidates:
            raise InvalidMutation(
                f"choice {index} of mutator {str(mutator.label)!r} must be one of "
                f"{list(candidates)!r:.200}, got {value!r}"
            )
        return value


@dataclass(frozen=True)
class _RecordedChoices(MutationSampler):
    """Sampler of the first candidates, which records all of them."""

    candidates: list[list[Any]] = field(default_factory=list)

    def choice(self, candidates: Sequence[Any], mutator: Mutator, model: Model, index: int) -> Any:  # noqa: ANN401 - a candidate
        self.candidates.append(list(candidates))
        return candidates[0]


@dataclass(frozen=True, slots=True)
class Mutation:
    """Record of one application of a mutator: choices, model before and model after.

    Examples:
        >>> from nni.nas.space import GraphModelSpace, StationaryMutator
        >>> class Nothing(StationaryMutator):
        ...     def mutate(self, model):
        ...         self.choice(["first", "second"])
        >>> mutator = Nothing(sampler=MutationSampler(), label="nothing")
        >>> mutator.apply(GraphModelSpace()).parent.samples
        ['first']
    """

    mutator: Mutator
    """Mutator that was applied."""
    samples: list[Any]
    """Choices in the order in which they were asked for."""
    from_: Model
    """Model before."""
    to: Model
    """Model after."""


@dataclass(frozen=True, slots=True)
class _Application:
    """State of a mutator that runs on a model: sampler, model and choices so far."""

    sampler: MutationSampler
    model: Model
    samples: list[Any]


_applications: ContextVar[Mapping[int, _Application]] = ContextVar("nni_applications")
_models: ContextVar[Mapping[int, Model]] = ContextVar("nni_bound_models")


@contextmanager
def _bound(mutator: Mutable, model: Model) -> Iterator[None]:
    token = _models.set({**_models.get({}), id(mutator): model})
    try:
        yield
    finally:
        _models.reset(token)


def _bound_model(mutator: Mutable) -> Model:
    models = _models.get({})
    if id(mutator) not in models:
        raise RuntimeError(
            f"a {type(mutator).__name__} works on a model: use `with mutator.bind_model(model):`"
        )
    return models[id(mutator)]


class Mutator(LabeledMutable):
    """Base of mutators: changes of a graph model, whose choices a sampler makes.

    A subclass implements `mutate`. In a space it is one dimension, whose value is a sampler, since
    its choices may depend on each other and on the model; those of a `StationaryMutator` do not.

    Args:
        sampler: what decides on the choices in `apply`; `bind_sampler` may set it later.
        label: name of the mutator; None: the sequence that it belongs to numbers it.

    Attributes:
        sampler: what decides on the choices in `apply`.
        label: name of the mutator.

    Raises:
        ValueError: `label` is empty or contains `/`.

    Examples:
        >>> from nni.nas.space import GraphModelSpace, MutationSampler
        >>> class Grow(Mutator):
        ...     def mutate(self, model):
        ...         graph = model.add_graph("_model")
        ...         for number in range(self.choice([1, 2, 3])):
        ...             graph.add_node("node", "Function.torch.relu")
        >>> model = Grow(sampler=MutationSampler(), label="grow").apply(GraphModelSpace())
        >>> [node.name for node in model.get_nodes()], len(model.history)
        (['node'], 1)
    """

    def __init__(self, *, sampler: MutationSampler | None = None, label: str | None = None) -> None:
        super().__init__(Label(_UNNAMED) if label is None else label)
        self._is_named = label is not None
        self.sampler = sampler

    @abstractmethod
    def mutate(self, model: Model) -> None:
        """Change a model in place.

        Args:
            model: copy of the model that is mutated.

        Raises:
            InvalidMutation: the choices have no valid result.
        """

    def choice(self, candidates: Iterable[Any]) -> Any:  # noqa: ANN401 - a candidate
        """Ask the sampler for one of the candidates; record and return it; raise outside `apply`.

        Args:
            candidates: what to choose from.

        Returns:
            One of the candidates.

        Raises:
            RuntimeError: the mutator is not being applied.
        """
        application = _applications.get({}).get(id(self))
        if application is None:
            raise RuntimeError(
                f"{type(self).__name__}.choice can be called in mutate only, while apply runs"
            )
        chosen = application.sampler.choice(
            list(candidates), self, application.model, len(application.samples)
        )
        application.samples.append(chosen)
        return chosen

    def bind_sampler(self, sampler: MutationSampler) -> Self:
        """Set the sampler of `apply`.

        Args:
            sampler: what decides on the choices.

        Returns:
            The mutator itself.
        """
        self.sampler = sampler
        return self

    def apply(self, model: Model) -> Model:
        """Return a copy of a model, mutated by the bound sampler; raise if there is none.

        Args:
            model: model to mutate.

        Returns:
            The copy; its `parent` is the `Mutation`.

        Raises:
            RuntimeError: no sampler is bound.
        """
        if self.sampler is None:
            raise RuntimeError(
                f"mutator {str(self.label)!r} has no sampler; call bind_sampler before apply"
            )
        return self.apply_with(self.sampler, model)

    def apply_with(self, sampler: MutationSampler, model: Model) -> Model:
        """Return a copy of a model, mutated by the choices of a sampler.

        Args:
            sampler: what decides on the choices.
            model: model to mutate.

        Returns:
            The copy; its `parent` is the `Mutation`.
        """
        mutated = model.fork()
        mutated.status = ModelStatus.Mutating
        application = _Application(sampler, mutated, [])
        mutated.parent = Mutation(self, application.samples, model, mutated)
        token = _applications.set({**_applications.get({}), id(self): application})
        try:
            sampler.mutation_start(self, mutated)
            self.mutate(mutated)
            sampler.mutation_end(self, mutated)
        finally:
            _applications.reset(token)
        return mutated

    @contextmanager
    def bind_model(self, model: Model) -> Iterator[Self]:
        """Set the model that `simplify`, `freeze` and their like work on, until the context ends.

        Args:
            model: model to mutate.

        Yields:
            The mutator itself.
        """
        with _bound(self, model):
            yield self

    @property
    def bound_model(self) -> Model:
        """Model of `bind_model`.

        Raises:
            RuntimeError: no model is bound.
        """
        return _bound_model(self)

    def number(self, position: int) -> None:
        """Label a mutator without a label by a number; leave others as they are.

        Args:
            position: number, from 1.
        """
        if not self._is_named:
            self.label = Label(f"{_UNNAMED}_{position}")
            self._is_named = True

    def dry_run(self, model: Model) -> tuple[Any, Model]:
        """Return the candidates of each choice, and a copy of the model after the first ones.

        Args:
            model: model to mutate; it stays as it is.

        Returns:
            The candidates of each choice, and the mutated copy.
        """
        sampler = _RecordedChoices()
        mutated = self.apply_with(sampler, model)
        return sampler.candidates, mutated

    def check_value(self, value: Any) -> str | None:  # noqa: ANN401 - it is to be checked
        """Return None for a `MutationSampler`, else the text of what the value must be."""
        return None if isinstance(value, MutationSampler) else "a MutationSampler"

    def default_value(self) -> MutationSampler:
        """Return a sampler of the first candidates."""
        return FirstChoices()

    def random_value(self, random_state: RandomState) -> MutationSampler:
        """Return a sampler of random candidates."""
        return RandomChoices(int(random_state.random() * _SEEDS))

    def grid_values(self, granularity: int) -> Iterator[Any]:
        """Raise ValueError: the choices are not known before they are requested.

        Args:
            granularity: without effect.

        Returns:
            Nothing.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            f"the choices of mutator {str(self.label)!r} cannot be enumerated, as they may depend "
            f"on each other (granularity {granularity}); derive it from StationaryMutator if they "
            "do not"
        )

    def freeze(self, sample: Sample) -> Model:
        """Return the bound model, mutated by the sampler of a sample."""
        self.validate(sample)
        return self.apply_with(sample[self.label], self.bound_model)


class StationaryMutator(Mutator):
    """Mutator that always asks for the same choices, in the same order.

    Each of them is a dimension of the space: its label is that of the mutator if there is one
    choice, and `label/0`, `label/1`, … if there are several.

    Args:
        sampler: see `Mutator`.
        label: see `Mutator`.

    Examples:
        >>> from nni.nas.space import GraphModelSpace
        >>> class Activation(StationaryMutator):
        ...     def mutate(self, model):
        ...         model.get_nodes_by_label("act")[0].update_operation(
        ...             self.choice(["Function.torch.relu", "Function.torch.tanh"])
        ...         )
        >>> model = GraphModelSpace()
        >>> model.add_graph("_model").add_node("act", "Function.torch.relu").update_label("act")
        >>> choices, mutated = Activation(label="act").dry_run(model)
        >>> choices
        {'act': Categorical(['Function.torch.relu', 'Function.torch.tanh'], label='act')}
    """

    def dry_run(self, model: Model) -> tuple[dict[str, Categorical], Model]:
        """Return the choices of the mutator by label, and the model after the first candidates.

        Args:
            model: model to mutate; it stays as it is.

        Returns:
            Label to choice, and the mutated copy.
        """
        candidates, mutated = super().dry_run(model)
        labels = [self._label_of(index, len(candidates)) for index in range(len(candidates))]
        return {
            label: Categorical(values, label=label)
            for label, values in zip(labels, candidates, strict=True)
        }, mutated

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield the choices that the mutator asks for on the bound model."""
        for choice in self.dry_run(self.bound_model)[0].values():
            yield from choice.leaf_mutables(is_leaf)

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why the bound model cannot be mutated by a sample, None if it can."""
        try:
            self.freeze(sample)
        except SampleValidationError as error:
            return error
        return None

    def freeze(self, sample: Sample) -> Model:
        """Return a copy of the bound model, mutated by the values of a sample."""

        def value(index: int) -> Any:  # noqa: ANN401 - a candidate
            label = self._label_of(index, index + 2)
            if index == 0 and label not in sample:
                label = self.label  # as if this is the only choice
            if label not in sample:
                raise SampleMissingError.of(label, sample)
            return sample[label]

        return self.apply_with(_FixedChoices(value), self.bound_model)

    def _label_of(self, index: int, count: int) -> Label:
        return self.label if count == 1 else Label(f"{self.label}{SEPARATOR}{index}")


class MutatorSequence(Mutable):
    """Mutators that are applied one after another, each to the result of the one before.

    Args:
        mutators: the mutators; those without a label are numbered.

    Attributes:
        mutators: the mutators.

    Raises:
        TypeError: one of them is no mutator.

    Examples:
        >>> from nni.nas.space import GraphModelSpace
        >>> class Pick(StationaryMutator):
        ...     def mutate(self, model):
        ...         self.choice([1, 2])
        >>> mutators = MutatorSequence([Pick(), Pick()])
        >>> with mutators.bind_model(GraphModelSpace()):
        ...     list(mutators.simplify())
        ['mutation_1', 'mutation_2']
    """

    def __init__(self, mutators: Iterable[Mutator]) -> None:
        self.mutators = list(mutators)
        for position, mutator in enumerate(self.mutators, 1):
            if not isinstance(mutator, Mutator):
                raise TypeError(
                    f"mutators must be objects of subclasses of Mutator, got {mutator!r:.200}"
                )
            mutator.number(position)

    @contextmanager
    def bind_model(self, model: Model) -> Iterator[Self]:
        """Set the model that the sequence works on, until the context ends.

        Args:
            model: model to mutate.

        Yields:
            The sequence itself.
        """
        with _bound(self, model):
            yield self

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield the leaves of each mutator, on the model that the ones before make by default."""
        model = _bound_model(self)
        for mutator in self.mutators:
            with mutator.bind_model(model):
                yield from mutator.leaf_mutables(is_leaf)
            model = mutator.dry_run(model)[1]

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why a mutator cannot be applied with a sample, None if all can."""
        try:
            self.freeze(sample)
        except SampleValidationError as error:
            return error
        return None

    def freeze(self, sample: Sample) -> Model:
        """Return a copy of the bound model after all mutators.

        Args:
            sample: value of each label.

        Returns:
            A copy.

        Raises:
            nni.mutable.SampleValidationError: a mutator cannot be applied.
        """
        model = _bound_model(self)
        for mutator in self.mutators:
            with mutator.bind_model(model):
                model = mutator.freeze(sample)
        return model

    def __len__(self) -> int:
        return len(self.mutators)

    def __iter__(self) -> Iterator[Mutator]:
        return iter(self.mutators)

    def __getitem__(self, index: int) -> Mutator:
        return self.mutators[index]
