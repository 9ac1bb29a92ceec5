"""Labels of mutables, and the scopes that make them hierarchical."""

import warnings
from contextvars import ContextVar, Token
from typing import Final, Self

SEPARATOR: Final = "/"
"""Character between the names of nested scopes in a label."""
GLOBAL: Final = "global"
"""Scope of automatic labels that are made outside any scope."""


class Label(str):
    """Complete label, whose scope is part of it; a plain string still has to be placed in one.

    It is a string, and equal to the plain one. Deserializers restore labels with it, because a
    plain string with a separator is refused.

    Examples:
        >>> from nni.mutable import Categorical
        >>> Categorical([1, 2], label=Label("model/depth")).label
        'model/depth'
    """

    __slots__ = ()


class label_scope:  # noqa: N801 - name of the specification
    """Scope whose name precedes all labels that are made inside; a context manager.

    The full name is that of the surrounding scope with this name appended, and is fixed when the
    scope is entered first. Labels without a name are counted from 1; entering the same object
    again restarts the counter, so that the same code makes the same labels again.

    Scopes belong to a thread or an asynchronous task.

    Args:
        name: part of the label, without `/`. `None`: the next number of the surrounding scope.
            A complete label, which `auto_label` returned, is the full name itself.

    Raises:
        ValueError: `name` is empty or contains `/`.

    Examples:
        >>> with label_scope("model"):
        ...     print(auto_label("width"), auto_label(), auto_label())
        ...     with label_scope():
        ...         print(auto_label())
        model/width model/1 model/2
        model/3/1
    """

    def __init__(self, name: str | None = None) -> None:
        self._name = None if name is None else checked_label(name)
        self._path: Label | None = None
        self._separator = SEPARATOR
        self._count = 0
        self._tokens: list[Token[label_scope | None]] = []

    @staticmethod
    def current() -> "label_scope | None":
        """Return the innermost scope that is entered; None outside of all.

        Returns:
            The scope; `None` outside any.
        """
        return _scope.get()

    @property
    def path(self) -> Label:
        """Full name of the scope; RuntimeError before it is entered.

        Raises:
            RuntimeError: the scope has not been entered yet, which fixes the name.
        """
        if self._path is None:
            raise RuntimeError("a label scope has its full name once it has been entered")
        return self._path

    @property
    def count(self) -> int:
        """Number of automatic labels that were made since the scope was entered."""
        return self._count

    @property
    def separator(self) -> str:
        """Text between the name of this scope and the labels inside: that of the outer scope."""
        return self._separator

    def next_label(self) -> Label:
        """Return a label with the next number of this scope.

        Returns:
            The full label.
        """
        self._count += 1
        return Label(f"{self.path}{self.separator}{self._count}")

    def complete_label(self, name: str) -> Label:
        """Return the full label of a name in this scope.

        Args:
            name: name of a mutable, or of a scope inside.

        Returns:
            The full label.
        """
        return Label(f"{self.path}{self.separator}{name}")

    def __enter__(self) -> Self:
        if self._path is None:
            outer = _scope.get()
            self._separator = SEPARATOR if outer is None else outer.separator
            self._path = auto_label(self._name)
        self._count = 0
        self._tokens.append(_scope.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _scope.reset(self._tokens.pop())

    def __repr__(self) -> str:
        return f"label_scope({str(self._path or self._name)!r})"


_scope: ContextVar[label_scope | None] = ContextVar("_scope", default=None)


class _GlobalScope:
    """Counter of automatic labels outside any scope."""

    count = 0

    def next_label(self) -> Label:
        self.count += 1
        return Label(f"{GLOBAL}{SEPARATOR}{self.count}")


_global_scope = _GlobalScope()


def checked_label(label: str) -> str:
    """Return a label, or a part of one; raise if it is empty, or has a `/` and is no `Label`.

    Args:
        label: text that a user gave, or a complete `Label`.

    Returns:
        The same text.

    Raises:
        TypeError: it is no string.
        ValueError: it is empty, or contains `/` without being a complete label.

    Examples:
        >>> checked_label("depth")
        'depth'
    """
    if not isinstance(label, str):
        raise TypeError(f"label must be a string, got {label!r}")
    if not label or (SEPARATOR in label and not isinstance(label, Label)):
        raise ValueError(
            f"label must not be empty or contain {SEPARATOR!r}, got {label!r}; "
            f"nest labels with label_scope"
        )
    return label


def auto_label(name: str | None = None, scope: label_scope | None = None) -> Label:
    """Return the complete label of a mutable: its name, preceded by the scopes that surround it.

    Complete labels are returned as they are. Without a name the label is the next number of the
    scope; outside any scope that is `global/1`, `global/2`, … with a warning, because it depends on
    all that was made before.

    Args:
        name: name of the mutable inside its scope.
        scope: scope to place it in; `None`: the current one.

    Returns:
        The complete label.

    Raises:
        ValueError: `name` is empty or contains `/`.

    Examples:
        >>> with label_scope("model"):
        ...     label = auto_label("depth")
        >>> label, auto_label(label)
        ('model/depth', 'model/depth')
    """
    if isinstance(name, Label):
        return name
    here = scope or _scope.get()
    if name is None:
        if here is not None:
            return here.next_label()
        label = _global_scope.next_label()
        warnings.warn(
            f"a mutable outside any label scope has got the label {label!r}, which depends on the "
            "order of construction; give it a label or make it inside a label_scope",
            stacklevel=2,
        )
        return label
    name = checked_label(name)
    return Label(name) if here is None else here.complete_label(name)
