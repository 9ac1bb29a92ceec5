"""Conversion of a model space to a supernet by hooks, in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from torch import Tensor, nn

from nni.mutable import Mutable, MutableAnnotation
from nni.nas.nn.pytorch import ModelSpace, MutableModule

Memo = dict[str, Any]
"""What hooks of one conversion share, such as modules by label."""
HookResult = nn.Module | bool | tuple[nn.Module, bool] | None
MutationHook = Callable[[nn.Module, str, Memo, dict[str, Any]], HookResult]
"""Function of a module, its name, the memo and the arguments of the strategy.

It returns the module that takes the place of the given one, or None to leave it. A returned module
ends the hooks for this place; a boolean, alone or as second of a pair, says whether it does.
"""
Converted = TypeVar("Converted", bound=nn.Module)


class SuperModule:
    """Mark of modules that compute several architectures with shared weights."""


@contextmanager
def unchanged(inputs: object, label: str) -> Iterator[None]:
    """Raise RuntimeError if a block changes a tensor in place that other alternatives read, too.

    Args:
        inputs: tensor, or tuples, lists and dicts of such.
        label: name of the choice, for the error.

    Yields:
        Once.

    Raises:
        RuntimeError: a tensor was changed.
    """
    before = [(one, one._version) for one in _tensors(inputs) if not one.is_inference()]  # noqa: SLF001 - torch counts changes there
    yield
    if any(one._version != version for one, version in before):  # noqa: SLF001 - as above
        raise RuntimeError(
            f"an alternative of {label!r} changes its input in place, which the others read, too; "
            "construct its first layer with inplace=False"
        )


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)


def converted(kind: type[Converted], module: nn.Module, **attributes: object) -> Converted:
    """Return a module of another class that shares the parts and attributes of a given one.

    Weights, names of parts and hooks stay, so that state dicts fit both.

    Args:
        kind: class, usually a subclass of the class of `module`.
        module: module that the new one replaces.
        **attributes: further attributes.

    Returns:
        A new module, which shares all parts.
    """
    made = kind.__new__(kind)
    vars(made).update(vars(module))
    vars(made).pop("_simplified", None)  # cache of the leaves of the other module
    vars(made)["_modules"] = dict(module._modules)  # noqa: SLF001 - its own dict of shared parts
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def mutate(
    root: nn.Module, hooks: Iterable[MutationHook], memo: Memo, arguments: dict[str, Any]
) -> None:
    """Replace the modules below a root by what hooks return, in place.

    Parents come before their parts, and parts in the order in which they were added.

    Args:
        root: model space; it is not replaced itself.
        hooks: called in order for each module until one ends the chain.
        memo: passed to the hooks.
        arguments: passed to the hooks.
    """
    known: dict[int, nn.Module] = {}
    kept: list[nn.Module] = []  # holds every module, so that no two have the same id
    chain = list(hooks)
    stack: list[tuple[nn.Module, str]] = [(root, "")]
    while stack:
        parent, prefix = stack.pop()
        children = [(name, one) for name, one in parent._modules.items() if one is not None]  # noqa: SLF001 - one module may be registered twice
        entered: list[tuple[nn.Module, str]] = []
        for name, child in children:
            path = f"{prefix}{name}"
            if id(child) not in known:
                replacement = replaced(child, path, chain, memo, arguments)
                known[id(child)] = known[id(replacement)] = replacement
                kept += [child, replacement]
                entered.append((replacement, f"{path}."))
            parent._modules[name] = known[id(child)]  # noqa: SLF001 - keeps the order of parts
        stack += reversed(entered)


def replaced(
    module: nn.Module,
    name: str,
    hooks: Iterable[MutationHook],
    memo: Memo,
    arguments: dict[str, Any],
) -> nn.Module:
    """Apply hooks in turn to one module, until one ends the chain; return the last result.

    Args:
        module: the module.
        name: its path from the root.
        hooks: called in order until one ends the chain.
        memo: passed to the hooks.
        arguments: passed to the hooks.

    Returns:
        The module itself unless a hook replaced it.

    Raises:
        TypeError: a hook returned something else.
    """
    for hook in hooks:
        match hook(module, name, memo, arguments):
            case None:
                ends = False
            case bool() as ends:
                pass
            case nn.Module() as module:
                ends = True
            case (nn.Module() as module, bool() as ends):
                pass
            case other:
                raise TypeError(
                    "a mutation hook must return a module, None, a bool, or a module and a bool, "
                    f"got {other!r} from {hook!r}"
                )
        if ends:
            break
    return module


def refuse_remaining(
    module: nn.Module, name: str, memo: Memo, arguments: dict[str, Any]
) -> HookResult:
    """Raise TypeError for a mutable module that no earlier hook has replaced; else return None.

    Args:
        module: the module.
        name: its path from the root.
        memo: not used.
        arguments: arguments of the strategy, whose name is in the error.

    Returns:
        None.

    Raises:
        TypeError: the module has mutables, and does not compute several architectures.
    """
    del memo
    if isinstance(module, SuperModule | ModelSpace) or not isinstance(module, MutableModule):
        return None
    if module.mutables:
        raise TypeError(
            f"{type(module).__name__} at {name!r} is not supported by "
            f"{arguments.get('strategy', 'this strategy')}; use another primitive, or convert it "
            "by mutation_hooks or extra_oneshot_hooks of the space"
        )
    return None


def labels_without_effect(root: nn.Module) -> list[str]:
    """Return the labels that a space has registered and no super-module inside depends on.

    The constructor of the space has used their values, so that the supernet has only the default.

    Args:
        root: converted model space.
    """
    registered: dict[str, None] = {}
    reached: set[str] = set()
    for module in root.modules():
        if isinstance(module, SuperModule) and isinstance(module, Mutable):
            reached.update(module.simplify())
        elif isinstance(module, ModelSpace):
            for mutable in module.mutables:
                leaves = mutable.simplify().items()
                registered.update(
                    {
                        label: None
                        for label, leaf in leaves
                        if not isinstance(leaf, MutableAnnotation)
                    }
                )
    return [label for label in registered if label not in reached]


def is_supernet(model_space: object) -> bool:
    """Return whether a space was converted to a supernet.

    Args:
        model_space: any object.

    Returns:
        True after `OneShotStrategy.mutate_model`.
    """
    return bool(getattr(model_space, "is_supernet", False))
