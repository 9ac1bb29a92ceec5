"""Removal with proof: remove, run, compare, and step back where the model does not follow.

If the smaller model fails, the units of the module that failed are frozen and the removal starts
again from the original tensors. So a removal always ends with a model that runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as module_hooks

from nni.compression.speedup.adaptation import Adaptation
from nni.compression.speedup.graph import Inputs, run, tensors_in, unchanged
from nni.compression.speedup.groups import Dependencies
from nni.compression.speedup.removal import Undo, remove
from nni.compression.speedup.selection import largest_balanced
from nni.compression.speedup.slots import Flags

TOLERANCES = {torch.float64: 1e-7, torch.float32: 1e-4}
"""Largest accepted error by type of the outputs."""
COARSE_TOLERANCE = 5e-2
"""Largest accepted error of 16-bit outputs."""
MAX_ATTEMPTS = 64


@dataclass(frozen=True)
class Shrinking:
    """Accepted removal."""

    removed: Flags
    error: float
    changes: dict[str, dict[str, Any]]
    """Changes of modules beside tensors, by path."""


def outputs_of(model: nn.Module, inputs: Inputs) -> list[Tensor]:
    """Return copies of the floating-point outputs of a model in eval mode.

    Args:
        model: The model; its flags and buffers are the same afterwards.
        inputs: Inputs of its forward.

    Returns:
        The outputs in order.
    """
    with unchanged(model):
        output = run(model, inputs)
    return [one.detach().clone() for one in tensors_in(output) if one.is_floating_point()]


def relative_error(expected: list[Tensor], found: list[Tensor]) -> float:
    """Return max|a - b| / max|a| over pairs of tensors.

    Args:
        expected: The tensors a.
        found: The tensors b.

    Returns:
        The largest error of a pair; infinity if shapes or the places of NaN differ.

    Examples:
        >>> import torch
        >>> from nni.compression.speedup.shrinking import relative_error
        >>> relative_error([torch.tensor([2.0, -4.0])], [torch.tensor([2.0, -3.0])])
        0.25
    """
    if [one.shape for one in expected] != [one.shape for one in found]:
        return float("inf")
    worst = 0.0
    for one, other in zip(expected, found, strict=True):
        left, right = one.double(), other.double()
        if not torch.equal(left.isfinite(), right.isfinite()):
            return float("inf")
        left, right = left[left.isfinite()], right[right.isfinite()]
        if left.numel():
            scale, difference = float(left.abs().max()), float((left - right).abs().max())
            worst = max(worst, difference / scale if scale else difference)
    return worst


def tolerance(outputs: list[Tensor]) -> float:
    """Return the largest accepted error for outputs of a type."""
    return max((TOLERANCES.get(one.dtype, COARSE_TOLERANCE) for one in outputs), default=0.0)


def failing_module(model: nn.Module, inputs: Inputs) -> tuple[str, str] | None:
    """Return the module whose forward raises, and the message; None if the model runs.

    Args:
        model: The model.
        inputs: Inputs of its forward.

    Returns:
        The path of the innermost module and the text of the error.
    """
    names = {id(module): name for name, module in model.named_modules()}
    stack: list[str] = []

    def enter(module: nn.Module, _inputs: object) -> None:
        stack.append(names.get(id(module), stack[-1] if stack else ""))

    def leave(_module: nn.Module, _inputs: object, _output: object) -> None:
        stack.pop()

    before = module_hooks.register_module_forward_pre_hook(enter)
    after = module_hooks.register_module_forward_hook(leave)
    try:
        with unchanged(model):
            run(model, inputs)
    except Exception as error:  # noqa: BLE001 - code of users raises anything
        return (stack[-1] if stack else "", str(error).split("\n", 1)[0])
    finally:
        before.remove()
        after.remove()
    return None


def shrink(
    model: nn.Module,
    inputs: Inputs,
    dependencies: Dependencies,
    wanted: Flags,
    reference: Callable[[Flags], list[Tensor]],
    prepare: Callable[[Flags, Undo], None] | None = None,
) -> Shrinking:
    """Remove units from a model; take back what the model cannot do without.

    Args:
        model: The model, changed in place.
        inputs: Example inputs.
        dependencies: Its units; those that turn out to be needed are frozen.
        wanted: By representative: whether the unit should go.
        reference: Function from the units to the outputs of the masked model.
        prepare: Function that changes the model just before the units are removed.

    Returns:
        What was removed, and the error.

    Raises:
        RuntimeError: no removal was accepted.
    """
    removed = wanted & ~dependencies.frozen
    for _ in range(MAX_ATTEMPTS):
        removed = largest_balanced(dependencies.balances, removed)
        expected = reference(removed)
        undo = Undo()
        if prepare is not None:
            prepare(removed, undo)
        remove(model, dependencies, removed, undo)
        adaptation = Adaptation(model, dependencies, removed)
        failure, error = _tested(model, inputs, expected, adaptation)
        if not removed.any() or (failure is None and _accepted(dependencies, expected, error)):
            return Shrinking(removed, error, adaptation.changes(undo))
        adaptation.restore_all()
        undo.restore()
        _step_back(dependencies, removed, failure, error)
        removed &= ~dependencies.frozen
    raise RuntimeError(f"no removal was accepted in {MAX_ATTEMPTS} attempts")


def _accepted(dependencies: Dependencies, expected: list[Tensor], error: float) -> bool:
    """Return whether an error is rounding, or wanted because norms changed."""
    return bool(dependencies.changed_norms) or error <= tolerance(expected)


def _tested(
    model: nn.Module, inputs: Inputs, expected: list[Tensor], adaptation: Adaptation
) -> tuple[tuple[str, str] | None, float]:
    """Run a smaller model; adapt modules that fail until it runs, or no means is left."""
    for _ in range(MAX_ATTEMPTS):
        failure = failing_module(model, inputs)
        if failure is None:
            error = relative_error(expected, outputs_of(model, inputs))
            exact = _accepted(adaptation.dependencies, expected, error)
            if exact or not adaptation.escalate():
                return None, error
        elif not _advanced(adaptation, failure[0]):
            return failure, float("inf")
    return failure, float("inf")


def _advanced(adaptation: Adaptation, path: str) -> bool:
    """Adapt a failing module, or else the modules around it."""
    while not adaptation.advance(path):
        if not path:
            return False
        path = path.rpartition(".")[0]
    return True


def _step_back(
    dependencies: Dependencies, removed: Flags, failure: tuple[str, str] | None, error: float
) -> None:
    """Freeze the units of a failing module, or of the module around it, or all of them."""
    if failure is None:
        dependencies.freeze(dependencies.free(), f"the outputs would differ by {error:.1e}")
        return
    path, message = failure
    units = dependencies.units_of_module(path)
    while path and not removed[units].any():
        path = path.rpartition(".")[0]
        units = dependencies.units_of_module(path)
    units = units if removed[units].any() else dependencies.free()
    dependencies.freeze(units, f"{failure[0] or 'the model'} does not run with fewer: {message}")
