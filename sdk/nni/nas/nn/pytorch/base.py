"""Modules that are mutables: what they register, and how they and plain modules are frozen.

Freezing treats weights in three ways. A module on the way to a mutable is copied, with the weights
of its other children. A module whose arguments are mutable is constructed anew, with fresh weights.
A candidate without mutables inside is used as it is, so the frozen network shares its weights with
the space; deep-copy the result to part them.
"""

import copy
import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Final

from torch import nn

from nni.mutable import (
    LabeledMutable,
    Mutable,
    MutableAnnotation,
    Sample,
    SampleValidationError,
    auto_label,
    frozen_context,
    label_scope,
)
from nni.nas.space.context import current_model
from nni.nas.space.graph_forms import GraphForm

__all__ = ["MutableModule", "recursive_freeze"]

_MUTABLES: Final = "_mutables"
_CACHE: Final = "_simplified"
_RECORD: Final = ("trace_args", "trace_kwargs")
_UNSCOPED: Final = "global/"
"""Begin of labels that were counted outside any scope."""

_dry_run: ContextVar[str | None] = ContextVar("nni_dry_run", default=None)
"""Name of the space that is being constructed, None outside of constructors."""


class MutableModule(Mutable, nn.Module):
    """Base of modules that are mutables, and of those that contain some.

    The mutables of a module are those that it registers by `add_mutable`, and those of the modules
    inside, however deep. A subclass with mutables of its own overrides `freeze`. A subclass that
    overrides `create_fixed_module` decides what its constructor returns inside `model_context`.

    Examples:
        >>> import nni
        >>> class Scale(MutableModule):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = self.add_mutable(nni.choice("factor", [1, 2]))
        ...     def freeze(self, sample):
        ...         self.validate(sample)
        ...         return Fixed(self.factor.freeze(sample))
        >>> class Fixed(nn.Module):
        ...     def __init__(self, factor):
        ...         super().__init__()
        ...         self.factor = factor
        >>> network = nn.Sequential(nn.Flatten(), Scale())
        >>> recursive_freeze(network, {"factor": 2})[0][1].factor
        2
    """

    __jit_unused_properties__: ClassVar = ["mutables"]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401, D102 - see create_fixed_module
        # Copies and pickles create instances without arguments.
        if args or kwargs:
            sample = current_model()
            if sample is not None and cls.should_invoke_fixed_module():
                return cls.create_fixed_module(sample, *args, **kwargs)
        return super().__new__(cls)

    @classmethod
    def should_invoke_fixed_module(cls) -> bool:
        """Return whether constructors call `create_fixed_module` inside `model_context`.

        Returns:
            True if the class overrides `create_fixed_module`.
        """
        default = MutableModule.create_fixed_module.__func__  # type: ignore[attr-defined]
        return cls.create_fixed_module.__func__ is not default  # type: ignore[attr-defined]

    @classmethod
    def create_fixed_module(cls, sample: Sample, *args: Any, **kwargs: Any) -> nn.Module:  # noqa: ANN401 - of any class
        """Return the module for this class in `model_context`; the base raises TypeError.

        Args:
            sample: value of each label.
            *args: positional arguments of the constructor.
            **kwargs: named arguments of the constructor.

        Returns:
            A module without mutables. It must not be an instance of this class, whose constructor
            Python would call again.

        Raises:
            TypeError: the class does not override this method.
        """
        raise TypeError(
            f"{cls.__name__} does not override create_fixed_module, so that its constructor runs "
            f"inside model_context, too; got a sample with {sorted(map(str, sample))}"
        )

    def add_mutable(self, mutable: Any) -> Any:  # noqa: ANN401 - of its own type
        """Register a mutable as a part of this module, unless in `model_context`; return it.

        Register before use: in the constructor of a space, registration fixes the default that
        `nni.mutable.ensure_frozen` then returns. Inside `model_context` nothing is registered.

        Args:
            mutable: symbol, expression, constraint or container.

        Returns:
            The same mutable.

        Raises:
            TypeError: `mutable` is no mutable.
            ValueError: it has an automatic label, and the space under construction has no prefix.
        """
        if not isinstance(mutable, Mutable):
            raise TypeError(
                f"mutable must be a mutable, such as nni.choice(...) returns, got {mutable!r}"
            )
        if current_model() is not None:
            return mutable
        space = _dry_run.get()
        if space is not None:
            _record_defaults(mutable, space)
        vars(self).setdefault(_MUTABLES, []).append(mutable)
        return mutable

    @property
    def mutables(self) -> list[Mutable]:
        """Mutables that this module itself registered, in order; a copy."""
        return list(vars(self).get(_MUTABLES, ()))

    def named_mutable_descendants(self) -> Iterator[tuple[str, "MutableModule"]]:
        """Yield name and module of the nearest mutable modules below, each once, none inside them.

        Yields:
            Name relative to this module, and module. Modules inside the latter do not follow.
        """
        yield from mutable_descendants(self)

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield the leaves of the own mutables, then those of the modules inside."""
        for mutable in vars(self).get(_MUTABLES, ()):
            yield from mutable.leaf_mutables(is_leaf)
        for _, module in self.named_mutable_descendants():
            yield from module.leaf_mutables(is_leaf)

    def simplify(
        self, is_leaf: Callable[[Mutable], bool] | None = None
    ) -> dict[str, LabeledMutable]:
        """Return the leaves by label; cached until a module or mutable inside is exchanged.

        The result is computed again when a module inside, or a registered mutable, has been added,
        removed or exchanged since.

        Args:
            is_leaf: see `nni.mutable.Mutable.leaf_mutables`.

        Returns:
            Label to leaf; a copy.
        """
        if is_leaf is not None:
            return super().simplify(is_leaf)
        parts = list(_parts(self))
        cache = vars(self).get(_CACHE)
        if cache is None or not cache.holds(parts):
            cache = _Simplified(parts, super().simplify())
            vars(self)[_CACHE] = cache
        return dict(cache.leaves)

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why an own mutable, or a module inside, does not contain a sample; or None."""
        for mutable in vars(self).get(_MUTABLES, ()):
            error: SampleValidationError | None = mutable.check_contains(sample)
            if error is not None:
                return error
        return check_descendants(self, sample)

    def freeze(self, sample: Sample) -> Any:  # noqa: ANN401 - any module
        """Return a copy with modules inside frozen, or itself without any; raise for own mutables.

        Args:
            sample: value of each label.

        Returns:
            This module itself if nothing inside is mutable; else a copy, see above on weights.

        Raises:
            TypeError: this module has registered mutables, and its class does not override
                `freeze`.
        """
        self.validate(sample)
        if vars(self).get(_MUTABLES):
            raise TypeError(
                f"{type(self).__name__} registers mutables and must override freeze(sample), or "
                "derive from ParametrizedModule or ModelSpace, which construct it again"
            )
        return frozen_copy(self, sample)[0]

    def graph_form(self) -> GraphForm | None:
        """Return None for a module that is a graph of its own; raise TypeError if it cannot be one.

        Returns:
            Its form; None if it is a graph of its own, of the modules inside.

        Raises:
            TypeError: what the module computes depends on more than the modules inside.
        """
        if type(self).freeze is not MutableModule.freeze:
            raise TypeError(
                f"{type(self).__name__} is frozen in a way that the graph format does not know; "
                "use the simplified format"
            )
        check_has_no_values(self)
        return None

    def _unwrap_parameter(self) -> "MutableModule":
        """Return the module itself: a traced constructor that takes modules gets the module."""
        return self

    def __repr__(self) -> str:
        return nn.Module.__repr__(self)


def recursive_freeze(module: nn.Module, sample: Sample) -> tuple[nn.Module, bool]:
    """Return a frozen copy of a module, itself if nothing is mutable; and whether they differ.

    Args:
        module: any module.
        sample: value of each label.

    Returns:
        The frozen module, and whether it differs from the given one. A module without mutables is
        returned itself.

    Raises:
        nni.mutable.SampleValidationError: the sample is not contained in the module.

    Examples:
        >>> from nni.nas.nn.pytorch import LayerChoice
        >>> network = nn.Sequential(nn.Flatten(), LayerChoice([nn.ReLU(), nn.Tanh()], label="act"))
        >>> recursive_freeze(network, {"act": 1})
        (Sequential(
          (0): Flatten(start_dim=1, end_dim=-1)
          (1): Tanh()
        ), True)
        >>> recursive_freeze(nn.ReLU(), {})
        (ReLU(), False)
    """
    if isinstance(module, MutableModule):
        frozen = module.freeze(sample)
        return frozen, frozen is not module
    return frozen_copy(module, sample)


def frozen_copy(module: nn.Module, sample: Sample) -> tuple[nn.Module, bool]:
    """Return a copy with mutable modules inside frozen, and True; or the module itself, and False.

    Args:
        module: any module; what it has registered itself is left out of the copy.
        sample: value of each label.
    """
    frozen: dict[int, Any] = {}
    for name, child in mutable_descendants(module):
        try:
            replacement = child.freeze(sample)
        except SampleValidationError as error:
            raise error.inside(name) from None
        if replacement is not child:
            frozen[id(child)] = replacement
    if not frozen:
        return module, False
    # A copy finds the frozen modules wherever the original refers to the mutable ones.
    for name in _RECORD:
        if name in vars(module):
            frozen[id(vars(module)[name])] = vars(module)[name]
    copied = copy.deepcopy(module, frozen)
    vars(copied).pop(_MUTABLES, None)
    return copied, True


def mutable_descendants(module: nn.Module) -> Iterator[tuple[str, MutableModule]]:
    """Yield the nearest mutable modules below a module, each once, with relative names.

    Args:
        module: any module; it is not yielded itself.
    """
    seen: set[int] = set()
    stack = list(_named_children(module, ""))
    while stack:
        name, child = stack.pop()
        if id(child) in seen:
            continue
        seen.add(id(child))
        if isinstance(child, MutableModule):
            yield name, child
        else:
            stack.extend(_named_children(child, f"{name}."))


def _named_children(module: nn.Module, prefix: str) -> Iterator[tuple[str, nn.Module]]:
    """Yield the children with their names, the last one first."""
    for name, child in reversed(module._modules.items()):  # noqa: SLF001 - named_children is slow
        if child is not None:
            yield prefix + name, child


def check_module(module: nn.Module, sample: Sample) -> SampleValidationError | None:
    """Return why a sample does not fit a module, None if it fits.

    Args:
        module: any module.
        sample: value of each label.
    """
    if isinstance(module, MutableModule):
        return module.check_contains(sample)
    return check_descendants(module, sample)


def check_descendants(module: nn.Module, sample: Sample) -> SampleValidationError | None:
    """Return why a sample does not fit the mutable modules below a module, None if it fits.

    Args:
        module: any module.
        sample: value of each label.
    """
    for name, child in mutable_descendants(module):
        error = child.check_contains(sample)
        if error is not None:
            return error.inside(name)
    return None


def module_label(label: str | None, kind: str) -> str:
    """Return the complete label of a primitive, generated for None; raise if it has no scope.

    Args:
        label: name that the user gave, if any.
        kind: class of the primitive, for the error.

    Raises:
        ValueError: `label` is None, and the space under construction has no prefix.
    """
    if label is None and label_scope.current() is None and _dry_run.get() is not None:
        raise ValueError(_label_needed(kind, _dry_run.get()))
    return auto_label(label)


def check_has_no_values(module: MutableModule) -> None:
    """Raise TypeError if a constructor may have used values of mutables that it has registered.

    Args:
        module: module of which a graph shall be made.
    """
    values = [one for one in module.mutables if not isinstance(one, MutableAnnotation)]
    if values:
        raise TypeError(
            f"{type(module).__name__} registers mutables, and its constructor may have used their "
            "values, which a graph does not see; pass them to modules as arguments without "
            "add_mutable, or use the simplified format"
        )


def is_dry_run() -> bool:
    """Return whether the constructor of a space runs, outside `model_context`."""
    return _dry_run.get() is not None and current_model() is None


@contextmanager
def dry_run(space: str) -> Iterator[None]:
    """Within a block, record the defaults of registered mutables, for modules constructed later.

    Args:
        space: name of the class that is being constructed.
    """
    if _dry_run.get() is not None:  # of an inner space: the outer one has the record
        yield
        return
    token = _dry_run.set(space)
    try:
        with frozen_context({}):
            yield
    finally:
        _dry_run.reset(token)


def default_value(mutable: LabeledMutable) -> Any:  # noqa: ANN401 - the value of any label
    """Return a leaf's value in the dry run's sample, if valid for the leaf; else its own default.

    Args:
        mutable: leaf.
    """
    sample = frozen_context.current() or {}
    known = mutable.label in sample and mutable.contains(sample)
    return sample[mutable.label] if known else mutable.default_value()


def _record_defaults(mutable: Mutable, space: str) -> None:
    """Add the defaults of new leaves to the dry run's sample; raise for a leaf without a label."""
    known = frozen_context.current() or {}
    added: Sample = {}
    for label, leaf in mutable.simplify().items():
        if label.startswith(_UNSCOPED):
            raise ValueError(_label_needed(repr(leaf), space))
        if label not in known and not isinstance(leaf, MutableAnnotation):
            leaf.add_default(added)
    frozen_context.update(added)


def _label_needed(what: str, space: str | None) -> str:
    return (
        f"{what} in {space} needs a label: pass label=..., or give all mutables of the space one "
        f"by `class {space}(ModelSpace, label_prefix=...)`"
    )


def _parts(module: nn.Module) -> Iterator[object]:
    """Yield all that the leaves of a module depend on: modules inside, and registered mutables."""
    stack = [module]
    while stack:
        module = stack.pop()
        yield module
        yield from vars(module).get(_MUTABLES, ())
        stack.extend(child for child in module._modules.values() if child is not None)  # noqa: SLF001 - as above


class _Simplified:
    """Cache of the leaves of a module, valid as long as its parts are the same; not copied."""

    def __init__(self, parts: list[object], leaves: dict[str, LabeledMutable]) -> None:
        self._parts = parts
        self.leaves = leaves

    def holds(self, parts: list[object]) -> bool:
        """Return whether these parts are the cached ones: the same objects, in order."""
        return len(parts) == len(self._parts) and all(map(operator.is_, parts, self._parts))

    def __reduce__(self) -> tuple[Any, ...]:
        return _Simplified, ([], {})
