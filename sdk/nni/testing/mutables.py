"""Conformance suite of mutables; a subclass builds the mutable under test."""

import copy
import itertools
import random
from abc import ABC, abstractmethod
from typing import ClassVar

from nni.common.serializer import dump, load
from nni.mutable import Mutable, Sample, SampleMissingError, SampleValidationError
from nni.mutable.record import equal_values

_SEED = 0


class MutableConformance(ABC):
    """Tests that every `nni.mutable.Mutable` must pass; subclass it in a module of tests.

    Examples:
        >>> from nni.mutable import Categorical
        >>> class TestMyMutable(MutableConformance):
        ...     def make(self):
        ...         return Categorical([1, 2], label="a")
        >>> TestMyMutable().test_grid_has_no_duplicates()
    """

    draws: ClassVar[int] = 50
    """Number of random samples that a test draws."""
    grid_length: ClassVar[int] = 200
    """Number of combinations of the grid that a test looks at."""
    granularity: ClassVar[int] = 3
    """How finely tests divide continuous dimensions."""

    @abstractmethod
    def make(self) -> Mutable:
        """Return a new mutable, always of the same definition and with the same labels."""

    def test_random_samples_are_contained(self) -> None:
        """Each sample that is drawn is valid; a draw may break a constraint, and then says so."""
        mutable = self.make()

        samples = self._random_samples(mutable)

        assert samples
        assert all(mutable.contains(sample) for sample in samples)

    def test_random_samples_are_repeatable(self) -> None:
        """The same seed gives the same samples."""
        assert self._random_samples(self.make()) == self._random_samples(self.make())

    def test_random_respects_the_memo(self) -> None:
        """Labels of the memo keep their values, the others are added."""
        mutable = self.make()
        for sample in self._random_samples(mutable):
            label = next(iter(sample), None)
            memo = {} if label is None else {label: sample[label]}
            try:
                mutable.random(memo, random.Random(_SEED))
            except SampleValidationError:
                continue
            assert label is None or memo[label] == sample[label]
            assert set(memo) == set(sample)

    def test_random_value_is_the_frozen_sample(self) -> None:
        """The value that `random` returns is that of the sample in the memo."""
        mutable = self.make()
        for memo in self._random_samples(mutable):
            assert self.is_same(mutable.freeze(memo), mutable.random(dict(memo)))

    def test_default_is_contained(self) -> None:
        """`robust_default` fills the memo with a valid sample, and returns its frozen value."""
        mutable = self.make()
        memo: Sample = {}

        value = mutable.robust_default(memo)

        assert mutable.contains(memo)
        assert self.is_same(value, mutable.freeze(memo))

    def test_grid_samples_are_contained(self) -> None:
        """Each combination of the grid is valid."""
        mutable = self.make()

        samples = self._grid_samples(mutable)

        assert samples
        assert all(mutable.contains(sample) for sample in samples)

    def test_grid_has_no_duplicates(self) -> None:
        """No combination comes twice."""
        samples = self._grid_samples(self.make())

        assert not any(
            equal_values(one, other) for one, other in itertools.combinations(samples, 2)
        )

    def test_grid_is_repeatable(self) -> None:
        """The order of the grid is the same each time."""
        assert equal_values(self._grid_samples(self.make()), self._grid_samples(self.make()))

    def test_grid_leaves_the_memo(self) -> None:
        """After the last combination the memo is as it was."""
        memo: Sample = {}

        for _ in itertools.islice(
            self.make().grid(memo, granularity=self.granularity), self.grid_length
        ):
            pass

        assert memo == {}

    def test_missing_labels_are_found(self) -> None:
        """A sample without one of the labels that it had is rejected, and the label is named."""
        mutable = self.make()
        (sample, *_) = self._random_samples(mutable)

        for label in sample:
            less = {other: value for other, value in sample.items() if other != label}
            error = mutable.check_contains(less)
            assert isinstance(error, SampleMissingError)
            assert repr(str(label)) in str(error)

    def test_wrong_values_are_found_and_not_raised(self) -> None:
        """A value that no mutable has is rejected by `check_contains`, which raises nothing."""
        mutable = self.make()
        (sample, *_) = self._random_samples(mutable)

        for label in sample:
            for wrong in (object(), [object()], float("nan")):
                assert mutable.check_contains({**sample, label: wrong}) is not None

    def test_labels_of_other_mutables_are_ignored(self) -> None:
        """A sample may have more labels than the mutable."""
        mutable = self.make()
        (sample, *_) = self._random_samples(mutable)

        assert mutable.contains({**sample, "label of another mutable": 1})

    def test_leaves_are_repeatable(self) -> None:
        """Two mutables of one definition have equal leaves in the same order."""
        one, other = self.make().simplify(), self.make().simplify()

        assert list(one) == list(other)
        assert all(leaf.equals(other[label]) for label, leaf in one.items())
        assert all(leaf.label == label for label, leaf in one.items())

    def test_definitions_are_compared(self) -> None:
        """Two mutables of one definition are equal, and nothing else is."""
        assert self.make().equals(self.make())
        assert not self.make().equals(None)

    def test_copies_are_equal(self) -> None:
        """A deep copy has the same definition."""
        mutable = self.make()

        assert copy.deepcopy(mutable).equals(mutable)

    def test_dumped_mutable_is_equal(self) -> None:
        """A dumped and loaded mutable has the same definition."""
        mutable = self.make()

        assert load(dump(mutable)).equals(mutable)

    def is_same(self, one: object, other: object) -> bool:
        """Return whether two frozen values are the same; for values without a usable `==`.

        Args:
            one: frozen value.
            other: frozen value.

        Returns:
            Whether they are equal.
        """
        return equal_values(one, other)

    def _random_samples(self, mutable: Mutable) -> list[Sample]:
        state = random.Random(_SEED)
        samples = []
        for _ in range(self.draws):
            try:
                samples.append(mutable.random_sample(random_state=state))
            except SampleValidationError:
                continue
        return samples

    def _grid_samples(self, mutable: Mutable) -> list[Sample]:
        found = mutable.grid_samples(granularity=self.granularity)
        return list(itertools.islice(found, self.grid_length))
