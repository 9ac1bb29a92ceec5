"""Files of a model that its trial leaves: the sample, its code, its trained weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

FOLDER: Final = "model"
"""Folder of the files in the folder of a trial."""
SAMPLE: Final = "sample.json"
"""Choice by label, as `model_context` takes it."""
CODE: Final = "model.py"
"""Source of the network; of models in the graph format."""
WEIGHTS: Final = "weights.safetensors"
"""Parameters and buffers of the network after its evaluation; of networks that have some."""


def save_model(model: Any, network: Any, trial_folder: Path) -> list[Path]:  # noqa: ANN401 - of any format
    """Write sample, code and weights, if there are any, below a trial's folder; return paths.

    Args:
        model: `ExecutableModelSpace` of a sample.
        network: what its evaluator has trained.
        trial_folder: folder of the trial; the files are in `FOLDER` below it.

    Raises:
        OSError: the disk takes no files.
    """
    folder = trial_folder / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / SAMPLE]
    written[0].write_text(json.dumps(model.sample or {}, indent=1), "utf-8")
    to_code: Callable[[], str] | None = getattr(model, "to_code", None)
    if to_code is not None:
        written.append(folder / CODE)
        written[-1].write_text(to_code(), "utf-8")
    if _has_tensors(network):
        from safetensors.torch import save_model as save_weights

        written.append(folder / WEIGHTS)
        save_weights(network, str(written[-1]))
    return written


def _has_tensors(network: Any) -> bool:  # noqa: ANN401 - a module, or what else a space builds
    return bool(hasattr(network, "state_dict") and network.state_dict())
