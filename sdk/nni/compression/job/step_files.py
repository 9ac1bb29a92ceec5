"""Files of a finished step: tensors in safetensors, everything else in JSON; no pickle.

| file | holds |
|---|---|
| `model.safetensors` | state of the model, or of the smaller model with its `plan.json` |
| `calibration.json` | scales of a quantized model |
| `model.onnx` | the exported model |
| `masks.safetensors` | masks of 0 and 1 as bytes, by `module|target` |
| `random.safetensors` | states of torch's generators |
| `step.json` | result, and the states of Python's and NumPy's generators; written last |
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from nni.compression.base.pruner import Masks
from nni.durable_files import replace_durably, write_whole

MODEL: Final = "model.safetensors"
PLAN: Final = "plan.json"
CALIBRATION: Final = "calibration.json"
ONNX: Final = "model.onnx"
MASKS: Final = "masks.safetensors"
RANDOM: Final = "random.safetensors"
RECORD: Final = "step.json"
_VERSION: Final = 1
_SEPARATOR: Final = "|"


@dataclass(frozen=True, slots=True)
class StepResult:
    """Result of a finished step: metric, sparsities, sizes, FLOPs, error and latencies.

    Args:
        number: number of the step, from 1.
        kind: `prune`, `speedup`, `fine_tune`, `quantize` or `export`.
        metric: what the evaluator returned after the step; larger is better.
        sparsity: masked fraction of each target, by `module.target`; empty after later steps.
        parameters: number of parameters of the model after the step.
        flops: floating-point operations of one example input; 0 before the speedup.
        error: largest difference that the speedup made, relative to the largest output.
        latency_before_ms: median latency of one example input before the speedup or the export; 0
            after other steps.
        latency_ms: median latency after it, measured in turn with the one before; later steps
            repeat it.
        size_bytes: bytes of parameters and buffers; after the export those of the file.

    Examples:
        >>> from nni.compression.job import StepResult
        >>> StepResult(1, "prune", 0.9).sparsity
        {}
    """

    number: int
    kind: str
    metric: float
    sparsity: Mapping[str, float] = field(default_factory=dict)
    parameters: int = 0
    flops: int = 0
    error: float = 0.0
    latency_before_ms: float = 0.0
    latency_ms: float = 0.0
    size_bytes: int = 0


def result_in(folder: Path, digest: str) -> StepResult | None:
    """Return the result of the step in a folder; None if incomplete; raise if of another job.

    Args:
        folder: folder of one step.
        digest: `JobDescription.digest` of the job.

    Raises:
        ValueError: the files are of another job or version.
    """
    try:
        text = (folder / RECORD).read_text("utf-8")
    except FileNotFoundError:
        return None
    record: dict[str, Any] = json.loads(text)
    if record["version"] != _VERSION or record["job"] != digest:
        raise ValueError(f"{folder} has the files of another job; choose an empty folder")
    return StepResult(**record["result"])


def save_step(folder: Path, digest: str, masks: Masks, result: StepResult) -> None:
    """Write masks, random states and the record of a step beside the model's files.

    Args:
        folder: folder of the step.
        digest: `JobDescription.digest` of the job.
        masks: masks by module and target.
        result: result of the step.

    Raises:
        OSError: a file cannot be written.
    """
    tensors = {
        f"{name}{_SEPARATOR}{target}": mask.detach().to("cpu", torch.uint8).contiguous()
        for name, targets in masks.items()
        for target, mask in targets.items()
    }
    save_durably(tensors, folder / MASKS)
    save_durably(_torch_states(), folder / RANDOM)
    record = {
        "version": _VERSION,
        "job": digest,
        "random": _other_states(),
        "result": asdict(result),
    }
    write_whole(folder / RECORD, json.dumps(record))


def save_model(model: nn.Module, folder: Path) -> None:
    """Write the state of a model; shared tensors are written once.

    Args:
        model: without wrappers.
        folder: folder of the step.

    Raises:
        OSError: the file cannot be written.
    """
    save_durably(state_of(model), folder / MODEL)


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """Return CPU copies of a model's parameters and buffers, a shared one under its first name."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor.detach().to("cpu").contiguous().clone()
    return found


def load_model(model: nn.Module, path: Path) -> None:
    """Load a model's parameters and buffers from a file; raise unless names and shapes fit.

    Args:
        model: as its factory builds it; shared tensors stay shared.
        path: file of safetensors.

    Raises:
        ValueError: the file has other names or shapes than the model.
    """
    tensors = load_file(path)
    own = state_of(model)
    if set(own) != set(tensors):
        name = min(set(own) ^ set(tensors))
        side = "the model" if name in own else "the file"
        raise ValueError(f"{path.name} does not fit the model: only {side} has {name!r}")
    for name, tensor in tensors.items():
        if tensor.shape != own[name].shape:
            raise ValueError(
                f"{path.name} does not fit the model: {name} has shape {tuple(tensor.shape)}, "
                f"but the model has {tuple(own[name].shape)}"
            )
    model.load_state_dict(tensors, strict=False)  # without the other names of shared tensors


def load_masks_of(folder: Path) -> Masks:
    """Load the masks of a finished step, as float tensors by module and target."""
    masks: Masks = {}
    for key, mask in load_file(folder / MASKS).items():
        name, _, target = key.rpartition(_SEPARATOR)
        masks.setdefault(name, {})[target] = mask.float()
    return masks


def load_random_states(folder: Path) -> None:
    """Set the generators of torch, GPUs too, Python and NumPy to a step folder's states."""
    states = load_file(folder / RANDOM)
    torch.set_rng_state(states["cpu"])
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            if f"cuda:{index}" in states:
                torch.cuda.set_rng_state(states[f"cuda:{index}"], index)
    others = json.loads((folder / RECORD).read_text("utf-8"))["random"]
    version, words, gauss = others["python"]
    random.setstate((version, tuple(words), gauss))
    name, keys, place, has_gauss, cached = others["numpy"]
    np.random.set_state((name, np.array(keys, dtype=np.uint32), place, has_gauss, cached))  # noqa: NPY002 - code of users draws from it


def seed_generators(seed: int) -> None:
    """Seed the global generators of torch, Python and NumPy."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - code of users draws from it


def empty_folder(folder: Path) -> Path:
    """Remove a folder with all its files, if there is one; make it anew and return it."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder


def save_durably(tensors: dict[str, Tensor], path: Path) -> None:
    """Replace a safetensors file atomically, so that it survives a cut of power.

    Raises:
        OSError: it cannot be written.
    """
    draft = path.with_suffix(".new")
    save_file(tensors, draft)
    replace_durably(draft, path)


def _torch_states() -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            states[f"cuda:{index}"] = torch.cuda.get_rng_state(index)
    return states


def _other_states() -> dict[str, Any]:
    name, keys, place, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002 - as above
    return {
        "python": random.getstate(),
        "numpy": [name, [int(key) for key in keys], place, has_gauss, cached],
    }
