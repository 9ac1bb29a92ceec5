"""Lists and dictionaries of mutables: the product of their members."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, overload

from nni.mutable.base import LabeledMutable, Mutable, Sample
from nni.mutable.errors import SampleValidationError
from nni.mutable.record import ConstructorRecord


class MutableList(ConstructorRecord, Mutable):
    """List of mutables, frozen to the list of their values.

    Args:
        mutables: the members.

    Raises:
        TypeError: a member is not mutable.

    Examples:
        >>> from nni.mutable import Categorical
        >>> space = MutableList([Categorical([1, 2], label="a")])
        >>> space.append(Categorical([3], label="b"))
        >>> len(space), list(space.grid())
        (2, [[1, 3], [2, 3]])
    """

    def __init__(self, mutables: Iterable[Mutable] = ()) -> None:
        self._members = [_checked(member) for member in mutables]

    def constructor_arguments(self) -> dict[str, Any]:
        """Return keyword arguments that construct an equal mutable."""
        return {"mutables": list(self._members)}

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterator[LabeledMutable]:
        """Yield the leaves of the members, one member after another."""
        for member in self._members:
            yield from member.leaf_mutables(is_leaf)

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return the first error of a member, in their order; None: there is none."""
        for at, member in enumerate(self._members):
            error = member.check_contains(sample)
            if error is not None:
                return error.inside(f"[{at}]")
        return None

    def freeze(self, sample: Sample) -> list[Any]:
        """Return the list of the members' values."""
        self.validate(sample)
        return [member.freeze(sample) for member in self._members]

    def append(self, mutable: Mutable) -> None:
        """Add a member at the end.

        Args:
            mutable: the member.
        """
        self._members.append(_checked(mutable))

    def extend(self, mutables: Iterable[Mutable]) -> None:
        """Add several members at the end.

        Args:
            mutables: the members.
        """
        self._members.extend([_checked(member) for member in mutables])

    def insert(self, index: int, mutable: Mutable) -> None:
        """Insert a member at a position, before the member that is there.

        Args:
            index: position of the new member.
            mutable: the member.
        """
        self._members.insert(index, _checked(mutable))

    def pop(self, index: int = -1) -> Mutable:
        """Remove and return the member at a position.

        Args:
            index: its position.

        Returns:
            The member.
        """
        return self._members.pop(index)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Mutable]:
        return iter(self._members)

    @overload
    def __getitem__(self, index: int) -> Mutable: ...

    @overload
    def __getitem__(self, index: slice) -> "MutableList": ...

    def __getitem__(self, index: int | slice) -> "Mutable | MutableList":
        if isinstance(index, slice):
            return MutableList(self._members[index])
        return self._members[index]

    def __setitem__(self, index: int, mutable: Mutable) -> None:
        self._members[index] = _checked(mutable)

    def __delitem__(self, index: int) -> None:
        del self._members[index]


class MutableDict(ConstructorRecord, Mutable):
    """Dictionary of mutables, frozen to the dictionary of their values.

    Args:
        mutables: name to member; the names are no labels.

    Raises:
        TypeError: a member is not mutable.

    Examples:
        >>> from nni.mutable import Categorical
        >>> space = MutableDict({"width": Categorical([16, 32], label="w")})
        >>> space["depth"] = Categorical([2], label="d")
        >>> space.freeze({"w": 32, "d": 2})
        {'width': 32, 'depth': 2}
    """

    def __init__(self, mutables: Mapping[str, Mutable] | None = None) -> None:
        self._members = {name: _checked(member) for name, member in (mutables or {}).items()}

    def constructor_arguments(self) -> dict[str, Any]:
        """Return keyword arguments that construct an equal mutable."""
        return {"mutables": dict(self._members)}

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterator[LabeledMutable]:
        """Yield the leaves of the members, one member after another."""
        for member in self._members.values():
            yield from member.leaf_mutables(is_leaf)

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return the first error of a member, in their order; None: there is none."""
        for name, member in self._members.items():
            error = member.check_contains(sample)
            if error is not None:
                return error.inside(name)
        return None

    def freeze(self, sample: Sample) -> dict[str, Any]:
        """Return the dictionary of the members' values."""
        self.validate(sample)
        return {name: member.freeze(sample) for name, member in self._members.items()}

    def keys(self) -> Iterable[str]:
        """Return a view of the names, in order of insertion.

        Returns:
            A view, in the order of insertion.
        """
        return self._members.keys()

    def values(self) -> Iterable[Mutable]:
        """Return a view of the members, in order of insertion.

        Returns:
            A view, in the order of insertion.
        """
        return self._members.values()

    def items(self) -> Iterable[tuple[str, Mutable]]:
        """Return a view of pairs of name and member, in order of insertion.

        Returns:
            A view, in the order of insertion.
        """
        return self._members.items()

    def update(self, mutables: Mapping[str, Mutable]) -> None:
        """Add or replace several members.

        Args:
            mutables: name to member.
        """
        self._members.update({name: _checked(member) for name, member in mutables.items()})

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __getitem__(self, name: str) -> Mutable:
        return self._members[name]

    def __setitem__(self, name: str, mutable: Mutable) -> None:
        self._members[name] = _checked(mutable)

    def __delitem__(self, name: str) -> None:
        del self._members[name]


def _checked(member: Mutable) -> Mutable:
    if not isinstance(member, Mutable):
        raise TypeError(
            f"members must be mutable, got {member!r}; a fixed value is a Categorical of one"
        )
    return member
