"""Verified removal: remove units, run and compare; freeze failing units and start again.

If the smaller model fails, the units of the module that failed are frozen and the removal starts
again from the original tensors. So a removal always ends with a model that runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nni.compression.speedup.adaptation import Adaptation
from nni.compression.speedup.deadline import Deadline
from nni.compression.speedup.following import (
    DeviationError,
    check_sizes,
    first_difference,
    kept_sums,
)
from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.groups import Dependencies
from nni.compression.speedup.removal import Undo, remove
from nni.compression.speedup.running import module_stack, run, tensors_in, unchanged
from nni.compression.speedup.selection import largest_balanced
from nni.compression.speedup.slots import Flags, Ids

TOLERANCES = {torch.float64: 1e-7, torch.float32: 1e-4}
"""Largest accepted error by type of the outputs."""
COARSE_TOLERANCE = 5e-2
"""Largest accepted error of 16-bit outputs."""
MAX_ATTEMPTS = 64


@dataclass(frozen=True)
class Shrinking:
    """Accepted removal: flags of removed units, error, attributes that modules changed."""

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
    """Return max|a - b| / max|a| over pairs of tensors; infinity for unequal shapes or NaN.

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
    """Return the largest accepted error for the dtypes of outputs; 0 without outputs."""
    return max((TOLERANCES.get(one.dtype, COARSE_TOLERANCE) for one in outputs), default=0.0)


@dataclass(frozen=True, slots=True)
class ShrinkFailure:
    """Reason why a smaller model is not accepted: module, message, operation, whether it runs."""

    path: str
    """Module whose forward was running."""
    message: str
    node: int | None = None
    """Operation that differs from the recorded one, where it is known."""
    runs: bool = False
    """Whether the model runs, and computes something else."""


def failure_of(
    model: nn.Module, inputs: Inputs, dependencies: Dependencies, removed: Flags
) -> ShrinkFailure | None:
    """Return where a smaller model fails or leaves the recorded run; None if it runs.

    Args:
        model: The model.
        inputs: Inputs of its forward.
        dependencies: Its units.
        removed: By representative: whether the unit was removed.

    Returns:
        The innermost module and the first line of the error.
    """
    stack: list[str] = []
    try:
        with module_stack(model, stack, after_errors=False):
            check_sizes(model, inputs, dependencies, removed)
    except DeviationError as error:
        return ShrinkFailure(error.node.module, str(error), error.node.index)
    except Exception as error:  # noqa: BLE001 - code of users raises anything
        return ShrinkFailure(stack[-1] if stack else "", str(error).split("\n", 1)[0])
    return None


def shrink(
    model: nn.Module,
    inputs: Inputs,
    dependencies: Dependencies,
    wanted: Flags,
    masked: Callable[[Flags], AbstractContextManager[None]],
    prepare: Callable[[Flags, Undo], None] | None = None,
    deadline: Deadline | None = None,
) -> Shrinking:
    """Remove units from a model in place, but for those it cannot do without; return the removal.

    Args:
        model: The model, changed in place.
        inputs: Example inputs.
        dependencies: Its units; those that turn out to be needed are frozen.
        wanted: By representative: whether the unit should go.
        masked: Context in which the model, with its original sizes, has zeros for units.
        prepare: Function that changes the model just before the units are removed.
        deadline: Instant after which a removal that fails is taken back as a whole; None means no
            limit.

    Returns:
        What was removed, and the error.
    """
    deadline = Deadline(None) if deadline is None else deadline
    removed = wanted & ~dependencies.frozen
    for attempt in range(MAX_ATTEMPTS):
        removed = _balanced(dependencies, removed, deadline)
        with masked(removed):
            expected = outputs_of(model, inputs)
        undo = Undo()
        if prepare is not None:
            prepare(removed, undo)
        remove(model, dependencies, removed, undo)
        adaptation = Adaptation(model, dependencies, removed)
        failure, error = _tested(model, inputs, expected, adaptation, deadline)
        if failure is None or not removed.any():
            break
        found = kept_sums(model, inputs, dependencies) if failure.runs else {}
        adaptation.restore_all()
        undo.restore()
        if deadline.passed() or attempt == MAX_ATTEMPTS - 2:
            reason = deadline.reason if deadline.passed() else failure.message
            dependencies.freeze(dependencies.free(), reason)
        else:
            if found:
                with masked(removed):
                    sums = kept_sums(model, inputs, dependencies, removed)
                failure = replace(failure, node=first_difference(sums, found))
            dependencies.freeze(*_causes(dependencies, removed, failure))
        removed &= ~dependencies.frozen
    return Shrinking(removed, error, adaptation.changes(undo))


def _balanced(dependencies: Dependencies, wanted: Flags, deadline: Deadline) -> Flags:
    """Return units that keep equal rows equal and no axis empty; freeze the last of an axis.

    Units that the deadline cuts off are frozen.
    """
    found = largest_balanced(dependencies.balances, wanted, deadline)
    while len(last := _last_indices(dependencies, found)):
        dependencies.freeze(last, "it is the last one of its axis")
        found = largest_balanced(dependencies.balances, found & ~dependencies.frozen, deadline)
    if deadline.passed():
        dependencies.freeze(np.flatnonzero(wanted & ~found), deadline.reason)
    return found


def _last_indices(dependencies: Dependencies, removed: Flags) -> Ids:
    """Return a unit of each axis that would lose all of its indices."""
    found = []
    for blocks in dependencies.blocks.values():
        for block in blocks:
            roots = dependencies.roots[block.ids]
            if removed[roots].all():
                found.append(int(roots.ravel()[0]))
    return np.unique(np.array(found, dtype=np.int64))


def _accepted(dependencies: Dependencies, expected: list[Tensor], error: float) -> bool:
    """Return whether an error is rounding, or wanted because norms changed."""
    finite = error < float("inf")
    return (finite and bool(dependencies.changed_norms)) or error <= tolerance(expected)


def _tested(
    model: nn.Module,
    inputs: Inputs,
    expected: list[Tensor],
    adaptation: Adaptation,
    deadline: Deadline,
) -> tuple[ShrinkFailure | None, float]:
    """Run a smaller model, adapting modules that fail; return failure, or None, and error."""
    dependencies, removed = adaptation.dependencies, adaptation.removed
    failure = None
    for _ in range(MAX_ATTEMPTS):
        heads = dependencies.graph.training_heads
        error = _error(model, inputs, expected, training_heads=heads)
        if _accepted(dependencies, expected, error):
            return None, error
        failure = failure_of(model, inputs, dependencies, removed)
        if failure is not None and deadline.passed():
            return failure, float("inf")
        if failure is None:
            failure = ShrinkFailure("", f"the outputs would differ by {error:.1e}", runs=True)
            if not adaptation.escalate():
                return failure, error
        elif not _advanced(adaptation, failure.path):
            return failure, float("inf")
    return failure, float("inf")


def _error(
    model: nn.Module, inputs: Inputs, expected: list[Tensor], *, training_heads: bool
) -> float:
    """Return the error of a smaller model; infinity if the model or a training head fails."""
    try:
        error = relative_error(expected, outputs_of(model, inputs))
        if training_heads:
            with unchanged(model, training_heads=True), torch.random.fork_rng(devices=[]):
                run(model, inputs)
    except Exception:  # noqa: BLE001 - code of users raises anything
        return float("inf")
    return error


def _advanced(adaptation: Adaptation, path: str) -> bool:
    """Adapt a failing module, or else the modules around it; return whether one was adapted."""
    while not adaptation.advance(path):
        if not path:
            return False
        path = path.rpartition(".")[0]
    return True


def _causes(dependencies: Dependencies, removed: Flags, failure: ShrinkFailure) -> tuple[Ids, str]:
    """Return the units whose removal explains a failure, and the reason for the report."""
    if failure.node is not None:
        for node in range(failure.node, -1, -1):  # or the last operation before it that shrinks
            units = dependencies.units_of_node(node)
            if removed[units].any():
                described = dependencies.graph.nodes[failure.node].describe()
                where = f" ({described})" if failure.runs else ""
                return units, f"{failure.message}{where}"
    if failure.runs:
        return _first_units(dependencies, removed), f"{failure.message} by rounding"
    path = failure.path
    units = dependencies.units_of_module(path)
    while path and not removed[units].any():
        path = path.rpartition(".")[0]
        units = dependencies.units_of_module(path)
    units = units if removed[units].any() else dependencies.free()
    return units, f"{failure.path or 'the model'} does not run with fewer: {failure.message}"


def _first_units(dependencies: Dependencies, removed: Flags) -> Ids:
    """Return the units used first by the model, until a quarter of the removed ones is among them.

    Without any operation that differs, an error is the rounding of early operations, which the
    later ones have amplified.
    """
    found: Ids = np.zeros(0, dtype=np.int64)
    for node in range(len(dependencies.graph.nodes)):
        found = np.union1d(found, dependencies.units_of_node(node))
        if removed[found].sum() >= removed.sum() / 4:
            return found
    return dependencies.free()
