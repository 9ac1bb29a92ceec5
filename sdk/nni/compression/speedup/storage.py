"""Storage of smaller models without pickle: tensors in safetensors, changes of modules in JSON.

The class of a model is code and is not stored. `load_smaller` gives a model that the same code has
built the sizes, attributes and tensors of the smaller one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from nni.compression.speedup.attention import PrunedMultiheadAttention
from nni.compression.speedup.report import SpeedupReport
from nni.compression.speedup.size_arguments import SizeAdapter

TENSORS: Final = "model.safetensors"
PLAN: Final = "plan.json"
VERSION: Final = 1
_CLASSES: Final = {"PrunedMultiheadAttention": PrunedMultiheadAttention}


def save_smaller(model: nn.Module, report: SpeedupReport, folder: str | Path) -> None:
    """Write the tensors and changed modules of a smaller model to a folder, without pickle.

    Args:
        model: Result of `prune` or `ModelSpeedup`, also after fine-tuning.
        report: Report of the same call.
        folder: Folder for `model.safetensors` and `plan.json`; it is created.

    Examples:
        >>> import torch
        >>> from nni.compression import prune
        >>> from nni.compression.speedup import load_smaller, save_smaller
        >>> def build():
        ...     return torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Linear(8, 1))
        >>> smaller, report = prune(build(), torch.zeros(1, 2))
        >>> save_smaller(smaller, report, "smaller")
        >>> load_smaller(build(), "smaller")[0]
        Linear(in_features=2, out_features=4, bias=True)
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, Tensor] = {}
    names: dict[int, str] = {}
    same: dict[str, str] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        first = names.setdefault(id(tensor), name)
        if first == name:
            tensors[name] = tensor.detach().contiguous()
        else:
            same[name] = first
    save_file(tensors, path / TENSORS)
    modules = {name: dict(changes) for name, changes in report.changes.items()}
    plan = {"version": VERSION, "modules": modules, "shared": same}
    (path / PLAN).write_text(json.dumps(plan, indent=1, sort_keys=True), "utf-8")


def load_smaller(model: nn.Module, folder: str | Path) -> nn.Module:
    """Shrink a full-size model in place to a stored one and return it; raise if it does not fit.

    No code is executed from the files.

    Args:
        model: Model that the same code has built with its original sizes; it is changed in place.
        folder: Folder that `save_smaller` wrote.

    Returns:
        The given model.

    Raises:
        ValueError: the files are of a later version, or do not fit the model.

    Examples:
        See `save_smaller`.

        >>> from nni.compression.speedup import load_smaller
    """
    path = Path(folder)
    plan: dict[str, Any] = json.loads((path / PLAN).read_text("utf-8"))
    if plan.get("version") != VERSION:
        raise ValueError(f"{PLAN} has version {plan.get('version')}, but {VERSION} is supported")
    modules = dict(model.named_modules())
    tensors = load_file(path / TENSORS)
    unknown = sorted({name for name in plan["modules"] if name not in modules})
    if unknown:
        raise ValueError(f"the model has no module {unknown[0]!r}; build it with the original code")
    for name, changes in plan["modules"].items():
        _apply(modules[name], changes)
    own = model.state_dict(keep_vars=True)
    for name, tensor in tensors.items():
        owner, _, key = name.rpartition(".")
        if owner not in modules:
            raise ValueError(f"the model has no module {owner!r} for the tensor {name!r}")
        if name in own:
            own[name].data = tensor.to(own[name].device)
        else:
            setattr(modules[owner], key, nn.Parameter(tensor))
    missing = sorted(set(own) - set(tensors) - set(plan["shared"]))
    if missing:
        raise ValueError(f"{TENSORS} lacks the tensor {missing[0]!r} of the model")
    return model


def _apply(module: nn.Module, changes: Mapping[str, Any]) -> None:
    """Set attributes, class and replaced sizes of a module."""
    if "class" in changes:
        module.__class__ = _CLASSES[changes["class"]]
    for name, value in changes.get("attributes", {}).items():
        setattr(module, name, tuple(value) if isinstance(value, list) else value)
    if "calls" in changes:
        calls = {
            int(place): [{int(axis): size for axis, size in one.items()} for one in shapes]
            for place, shapes in changes["calls"].items()
        }
        SizeAdapter(calls).attach(module)
