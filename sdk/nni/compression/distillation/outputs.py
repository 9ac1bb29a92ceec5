"""Outputs of the modules of a model, recorded while it is called."""

from collections.abc import Iterator, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.target_space import OUTPUT


def plain_modules(model: nn.Module) -> dict[str, nn.Module]:
    """Return the modules below a model once each, by the names they have without wrappers.

    Args:
        model: a model, some of whose modules may be wrapped.

    Returns:
        Every module once, a wrapper in place of the module that it wraps, without the root.

    Examples:
        >>> wrapped = nn.Sequential(ModuleWrapper(nn.Linear(1, 1), "0", {}))
        >>> [(name, type(module).__name__) for name, module in plain_modules(wrapped).items()]
        [('0', 'ModuleWrapper')]
    """
    found: dict[str, nn.Module] = {}
    seen: set[int] = set()
    for name, module in _below(model, ""):
        if id(module) not in seen:
            seen.add(id(module))
            found[name] = module
    return found


def unwrapped(module: nn.Module) -> nn.Module:
    """Return the module that a wrapper wraps, or the module itself.

    Args:
        module: a wrapper or another module.
    """
    return module.module if isinstance(module, ModuleWrapper) else module


class OutputRecord:
    """Recorder of copies of modules' outputs by forward hooks, in the order of the calls.

    Args:
        with_gradients_only: ignore calls without gradients, such as those of an evaluation between
            two training steps.
    """

    def __init__(self, *, with_gradients_only: bool) -> None:
        self._with_gradients_only = with_gradients_only
        self._outputs: dict[str, list[object]] = {}

    def hooks(self, modules: Mapping[str, nn.Module]) -> Iterator[RemovableHandle]:
        """Register a recording hook on each module, as the result is iterated; yield its handle.

        Args:
            modules: modules by name.

        Yields:
            The hook of each module.
        """
        for name, module in modules.items():
            yield module.register_forward_hook(partial(self._add, name))

    def of(self, name: str, target: str) -> list[Tensor]:
        """Return the given output of a module in each recorded call; [] if it was not called.

        Args:
            name: name of the module.
            target: `_output_` for the only or first one, or `_output_` with a position or key.

        Returns:
            Tensors in the order of the calls; empty if the module was not called.

        Raises:
            ValueError: the module has no such output.
        """
        return [_part(output, name, target) for output in self._outputs.get(name, ())]

    def clear(self) -> None:
        """Forget all outputs."""
        self._outputs.clear()

    def _add(self, name: str, _module: nn.Module, _inputs: object, output: object) -> None:
        if torch.is_grad_enabled() or not self._with_gradients_only:
            self._outputs.setdefault(name, []).append(_copied(output))


def _below(module: nn.Module, prefix: str) -> Iterator[tuple[str, nn.Module]]:
    for own, child in module.named_children():
        name = f"{prefix}{own}"
        yield name, child
        yield from _below(unwrapped(child), f"{name}.")


def _copied(output: object) -> object:
    """Return an output with copies of its tensors, which a later module may change in place."""
    if isinstance(output, Tensor):
        return output.clone()
    if isinstance(output, Mapping):
        return {key: _copied(one) for key, one in output.items()}
    return tuple(map(_copied, output)) if isinstance(output, tuple | list) else output


def _part(output: object, name: str, target: str) -> Tensor:
    key = target.removeprefix(OUTPUT)
    found = output
    if isinstance(output, Mapping):
        found = output.get(key) if key else next(iter(output.values()), None)
    elif isinstance(output, tuple | list):
        index = int(key or 0) if (key or "0").isdigit() else len(output)
        found = output[index] if index < len(output) else None
    elif key not in {"", "0"}:
        found = None
    if isinstance(found, Tensor):
        return found
    raise ValueError(
        f"{name} has no output {target!r} that is a tensor; it returns {_described(output)}: "
        "choose another target name"
    )


def _described(output: object) -> str:
    if isinstance(output, Mapping):
        return f"a dict with {', '.join(map(str, output)) or 'no key'}"
    if isinstance(output, tuple | list):
        return f"{len(output)} outputs"
    return f"a {type(output).__name__}"
