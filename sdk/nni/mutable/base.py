"""Contract of mutables: objects that represent a set of values, of which a sample picks one."""

import random as _random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from nni.mutable.errors import LegacyFormatError, SampleMissingError, SampleValidationError
from nni.mutable.labels import Label, auto_label

Sample = dict[str, Any]
"""Label to the chosen value. Labels of other mutables may stand in it; they are ignored."""

_RETRIES = 1000


class RandomState(Protocol):
    """Interface of a source of numbers in [0, 1): `random.Random`, generators of numpy.

    Examples:
        >>> import random
        >>> from nni.mutable import Categorical
        >>> Categorical([1, 2, 3], label="a").random(random_state=random.Random(1))
        1
    """

    def random(self) -> float:
        """Return the next number.

        Returns:
            It is in `[0, 1)`.
        """
        ...


class Mutable(ABC):
    """Base of spaces: a set of values, of which a sample (label to value) picks one.

    A sample maps the labels of the leaves to values. Sampling, enumerating and validating work on
    samples; `freeze` turns a sample into the concrete value. An implementation provides
    `leaf_mutables`, `check_contains` and `freeze`; the rest follows from them. Leaves derive from
    `LabeledMutable`.

    Mutables are not changed by any of these methods, so threads may share them. `memo` is the
    sample under construction: labels that it has are respected, those that it lacks are added. It
    stays as it was if the method raises.

    Examples:
        >>> import random
        >>> from nni.mutable import Categorical, MutableList
        >>> space = MutableList([Categorical([1, 2], label="a"), Categorical("xy", label="b")])
        >>> list(space.simplify())
        ['a', 'b']
        >>> space.freeze({"a": 2, "b": "x"})
        [2, 'x']
        >>> memo = {"a": 1}
        >>> space.random(memo, random.Random(0)), memo
        ([1, 'y'], {'a': 1, 'b': 'y'})
        >>> list(space.grid())
        [[1, 'x'], [1, 'y'], [2, 'x'], [2, 'y']]
    """

    @abstractmethod
    def leaf_mutables(self, is_leaf: Callable[["Mutable"], bool]) -> "Iterable[LabeledMutable]":
        """Yield the leaves in the order of discovery; a label may occur several times.

        Args:
            is_leaf: whether a mutable shall stand for itself. One that it refuses is taken apart
                if that is possible, and else stands for itself all the same.

        Returns:
            The leaves.
        """

    @abstractmethod
    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why a sample is not contained in this mutable, `None` if it is.

        Args:
            sample: label to value, which may be anything.

        Returns:
            An error whose paths lead to the leaf.
        """

    @abstractmethod
    def freeze(self, sample: Sample) -> Any:  # noqa: ANN401 - the values are the user's
        """Return the concrete value for a sample.

        Args:
            sample: label to value, of all leaves.

        Returns:
            The value. It shares nothing with the sample that a caller could change by accident.

        Raises:
            SampleValidationError: the sample is not contained in this mutable.
        """

    def simplify(
        self, is_leaf: Callable[["Mutable"], bool] | None = None
    ) -> "dict[str, LabeledMutable]":
        """Return the leaves by label, in the order of discovery; raise if equal labels differ.

        Args:
            is_leaf: see `leaf_mutables`; `None`: every `LabeledMutable` stands for itself.

        Returns:
            Label to leaf.

        Raises:
            ValueError: two leaves have the same label and different definitions.
        """
        leaves: dict[str, LabeledMutable] = {}
        for leaf in self.leaf_mutables(is_leaf or is_labeled):
            known = leaves.setdefault(leaf.label, leaf)
            if known is not leaf and not known.equals(leaf):
                raise ValueError(
                    f"mutables with the same label must be equal, but {leaf.label!r} is {known!r} "
                    f"and {leaf!r}; give one of them another label"
                )
        return leaves

    def contains(self, sample: Sample) -> bool:
        """Return whether a sample is contained in this mutable.

        Args:
            sample: label to value.

        Returns:
            True if `check_contains` finds no error.
        """
        return self.check_contains(sample) is None

    def validate(self, sample: Sample) -> None:
        """Raise the error of `check_contains` unless a sample is contained.

        Args:
            sample: label to value.

        Raises:
            SampleValidationError: the sample is not contained in this mutable.
        """
        error = self.check_contains(sample)
        if error is not None:
            raise error

    def default_sample(self, memo: Sample | None = None) -> Sample:
        """Return the sample of default values, `memo` completed in place; raise if it is invalid.

        Args:
            memo: sample to complete, in place.

        Returns:
            `memo`, or a new sample.

        Raises:
            SampleValidationError: it breaks a constraint.
        """
        return self._completed(memo, lambda leaf, sample: leaf.add_default(sample))

    def random_sample(
        self, memo: Sample | None = None, random_state: RandomState | None = None
    ) -> Sample:
        """Return a random sample, `memo` completed in place; raise if it breaks a constraint.

        Args:
            memo: sample to complete, in place.
            random_state: source of randomness; `None`: the generator of the module `random`.

        Returns:
            `memo`, or a new sample.

        Raises:
            SampleValidationError: it breaks a constraint; draw again.
        """
        state = _random if random_state is None else random_state
        return self._completed(memo, lambda leaf, sample: leaf.add_random(sample, state))

    def grid_samples(
        self, memo: Sample | None = None, granularity: int | None = None
    ) -> Iterator[Sample]:
        """Yield every valid sample as a new dict, in the order of `grid`.

        Args:
            memo: sample to complete; it holds the current one during the iteration.
            granularity: see `grid`.

        Yields:
            New samples.
        """
        sample: Sample = {} if memo is None else memo
        for _ in _combinations(list(self.simplify().values()), sample, granularity):
            if self.contains(sample):
                yield dict(sample)

    def default(self, memo: Sample | None = None) -> Any:  # noqa: ANN401 - the user's value
        """Return the concrete value of the default sample; raise if that breaks a constraint.

        Args:
            memo: sample to complete, in place.

        Returns:
            The value.

        Raises:
            SampleValidationError: the default sample breaks a constraint.
        """
        return self.freeze(self.default_sample(memo))

    def robust_default(self, memo: Sample | None = None, retries: int = _RETRIES) -> Any:  # noqa: ANN401 - the user's value
        """Return the concrete value of the default sample, or of another one if that is invalid.

        The others are random with a fixed seed, so the result is the same each time.

        Args:
            memo: sample to complete, in place.
            retries: largest number of random samples to try.

        Returns:
            The value.

        Raises:
            ValueError: none of them satisfies the constraints.
        """
        try:
            return self.default(memo)
        except SampleValidationError as error:
            first = error
        state = _random.Random(0)
        for _ in range(retries):
            try:
                return self.random(memo, state)
            except SampleValidationError:
                continue
        raise ValueError(
            f"the default or one of {retries} random samples must be valid, but none is; the "
            f"default: {first}"
        ) from first

    def random(self, memo: Sample | None = None, random_state: RandomState | None = None) -> Any:  # noqa: ANN401 - the user's value
        """Return the concrete value of a random sample; raise if that breaks a constraint.

        Args:
            memo: sample to complete, in place.
            random_state: source of randomness; `None`: the generator of the module `random`.

        Returns:
            The value.

        Raises:
            SampleValidationError: the sample breaks a constraint; draw again.
        """
        return self.freeze(self.random_sample(memo, random_state))

    def grid(self, memo: Sample | None = None, granularity: int | None = None) -> Iterator[Any]:
        """Yield the concrete value of every valid sample; the last leaf changes fastest.

        The leaves are combined in the order of `simplify`; the last one changes fastest. Samples
        that break a constraint are left out.

        Args:
            memo: sample to complete; it holds the current one during the iteration.
            granularity: how fine continuous leaves are divided, from 1; `None`: 1.

        Yields:
            The values.
        """
        for sample in self.grid_samples(memo, granularity):
            yield self.freeze(sample)

    def equals(self, other: object) -> bool:
        """Return whether another mutable has the same definition; by default only itself.

        Args:
            other: anything.

        Returns:
            True if it is a mutable of the same definition. A mutable that has no other rule equals
            itself only.
        """
        return self is other

    def as_legacy_dict(self) -> dict[str, Any]:
        """Return the form of tuning spaces, `_type` and `_value`; here raise LegacyFormatError.

        Returns:
            A dictionary of `_type` and `_value`.

        Raises:
            LegacyFormatError: this mutable has no such form.
        """
        raise LegacyFormatError(f"{self!r} has no legacy form; only a Categorical has")

    def _completed(
        self, memo: Sample | None, add: "Callable[[LabeledMutable, Sample], None]"
    ) -> Sample:
        """Return the sample that all leaves completed; raise if invalid, with `memo` unchanged."""
        sample: Sample = {} if memo is None else dict(memo)
        for leaf in self.simplify().values():
            add(leaf, sample)
        self.validate(sample)
        if memo is None:
            return sample
        memo.update(sample)
        return memo


class LabeledMutable(Mutable):
    """Base of leaves: one dimension of a space, with a label of its own.

    An implementation provides `check_value`, `default_value`, `random_value` and `grid_values`.

    Args:
        label: name of the dimension; `None`: the next number of the surrounding scope.

    Raises:
        ValueError: `label` is empty or contains `/`.

    Examples:
        >>> class Parity(LabeledMutable):
        ...     def check_value(self, value):
        ...         return None if value in ("odd", "even") else "odd or even"
        ...     def default_value(self):
        ...         return "odd"
        ...     def random_value(self, random_state):
        ...         return "odd" if random_state.random() < 0.5 else "even"
        ...     def grid_values(self, granularity):
        ...         yield from ("odd", "even")
        >>> parity = Parity("n")
        >>> parity.default(), list(parity.grid()), parity.contains({"n": "prime"})
        ('odd', ['odd', 'even'], False)
    """

    label: Label

    def __init__(self, label: str | None = None) -> None:
        self.label = auto_label(label)

    @abstractmethod
    def check_value(self, value: Any) -> str | None:  # noqa: ANN401 - it is to be checked
        """Return the rule that a value breaks, as a text after "must be"; None for a valid value.

        Args:
            value: anything.

        Returns:
            The rule, so that "must be …" followed by it is a sentence.
        """

    @abstractmethod
    def default_value(self) -> Any:  # noqa: ANN401 - the user's value
        """Return the default value in a sample.

        Returns:
            The value.
        """

    @abstractmethod
    def random_value(self, random_state: RandomState) -> Any:  # noqa: ANN401 - the user's value
        """Return a random value for a sample.

        Args:
            random_state: source of randomness.

        Returns:
            The value.
        """

    @abstractmethod
    def grid_values(self, granularity: int) -> Iterator[Any]:
        """Yield the values for samples, without duplicates.

        Args:
            granularity: how fine a continuous dimension is divided, from 1.

        Yields:
            The values.
        """

    def leaf_mutables(
        self,
        is_leaf: Callable[[Mutable], bool],
    ) -> "Iterable[LabeledMutable]":
        """Return this mutable alone, whatever `is_leaf` returns."""
        return (self,)

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why a sample has no valid value for the label, `None` if it has one."""
        given: object = sample
        if not isinstance(given, Mapping):
            return SampleValidationError(
                f"a sample must be a dict of labels to values, got {given!r}"
            ).inside(self.label)
        if self.label not in sample:
            return SampleMissingError.of(self.label, sample).inside(self.label)
        value = sample[self.label]
        rule = self.check_value(value)
        if rule is None:
            return None
        return SampleValidationError(
            f"the value of {str(self.label)!r} must be {rule}, got {value!r}"
        ).inside(self.label)

    def freeze(self, sample: Sample) -> Any:  # noqa: ANN401 - the user's value
        """Return the value that a sample has for the label."""
        self.validate(sample)
        return self.value_in(sample)

    def value_in(self, sample: Sample) -> Any:  # noqa: ANN401 - the user's value
        """Return the concrete value for a sample that is known to be valid.

        Args:
            sample: contained in this mutable.

        Returns:
            The value.
        """
        return sample[self.label]

    def add_default(self, sample: Sample) -> None:
        """Add the default value to a sample that has no value for the label.

        Args:
            sample: changed in place.
        """
        if self.label not in sample:
            sample[self.label] = self.default_value()

    def add_random(self, sample: Sample, random_state: RandomState) -> None:
        """Add a random value to a sample that has no value for the label.

        Args:
            sample: changed in place.
            random_state: source of randomness.
        """
        if self.label not in sample:
            sample[self.label] = self.random_value(random_state)

    def add_each(self, sample: Sample, granularity: int) -> Iterator[None]:
        """Set each value of the grid in the sample in turn; yield after each; remove the last one.

        A sample that has a value for the label has one step.

        Args:
            sample: changed in place; without the label again after the last step.
            granularity: how fine a continuous dimension is divided, from 1.

        Yields:
            Once for each value.
        """
        if self.label in sample:
            yield
            return
        try:
            for value in self.grid_values(granularity):
                sample[self.label] = value
                yield
        finally:
            sample.pop(self.label, None)


def is_labeled(mutable: Mutable) -> bool:
    """Return whether a mutable is one dimension of a space: the default rule of `simplify`.

    Args:
        mutable: any mutable.

    Returns:
        True if it has a label of its own.

    Examples:
        >>> from nni.mutable import Categorical, MutableList
        >>> is_labeled(Categorical([1], label="a")), is_labeled(MutableList([]))
        (True, False)
    """
    return isinstance(mutable, LabeledMutable)


def _combinations(
    leaves: list[LabeledMutable], sample: Sample, granularity: int | None
) -> Iterator[None]:
    """Add every combination of the leaves' values to the sample, one after another."""
    if granularity is not None and granularity < 1:
        raise ValueError(f"granularity must be >= 1, got {granularity}")
    if not leaves:
        yield
        return
    first, *rest = leaves
    for _ in first.add_each(sample, granularity or 1):
        yield from _combinations(rest, sample, granularity)
