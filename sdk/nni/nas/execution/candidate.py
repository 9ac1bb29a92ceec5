"""Parameters of a trial that evaluates a model, as the engine writes and the trial reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import nni
from nni.common.serializer.submission import dump_submission
from nni.nas.execution.payload_files import PayloadFiles
from nni.nas.execution.search_space import readable
from nni.nas.space.executable import ExecutableModelSpace

_MODEL: Final = "model"
_SAMPLE: Final = "sample"
_VERSION: Final = "nni_version"
_PAYLOADS: Final = "payloads"
"""Key of the folder of large payloads; absent if the document holds all."""
_NO_LIMIT: Final = 0


def parameters_of(
    model: ExecutableModelSpace, payloads: PayloadFiles | None = None
) -> dict[str, Any]:
    """Return a frozen model's trial parameters: sample, version, model; may write payload files.

    Args:
        model: frozen model.
        payloads: store of large payloads; None: they are refused.

    Raises:
        nni.common.serializer.PayloadTooLarge: a part of space or evaluator is no traced call, and
            too large to travel with each candidate.
        OSError: a payload cannot be stored.
    """
    parameters: dict[str, Any] = {
        _SAMPLE: {str(label): readable(value) for label, value in (model.sample or {}).items()},
        _VERSION: nni.__version__,
    }
    if payloads is None:
        return parameters | {_MODEL: json.loads(dump_submission(model))}
    document = json.loads(dump_submission(model, limit_bytes=_NO_LIMIT))
    return parameters | {_MODEL: payloads.spill(document), _PAYLOADS: str(payloads.folder)}


def model_from(parameters: Mapping[str, Any]) -> ExecutableModelSpace:
    """Load the model of a trial's parameters; raise ValueError if made by another version of nni.

    Raises:
        ValueError: the parameters are not those of a model, or of another version of nni; or a
            payload has not the hash that they name.
        FileNotFoundError: a payload is not on this machine.
        TypeError: the model is no model space.
    """
    if _MODEL not in parameters:
        raise ValueError(
            f"the parameters of this trial must hold a {_MODEL!r}, got {sorted(parameters)}; "
            "start the search with NasExperiment"
        )
    if parameters.get(_VERSION) != nni.__version__:
        raise ValueError(
            f"the search runs nni {parameters.get(_VERSION)} and this trial {nni.__version__}; "
            "install the same version on both machines"
        )
    document = parameters[_MODEL]
    if _PAYLOADS in parameters:
        document = PayloadFiles(Path(parameters[_PAYLOADS]), _NO_LIMIT).restore(document)
    model = nni.load(json.dumps(document))
    if not isinstance(model, ExecutableModelSpace):
        raise TypeError(f"the parameters of this trial must hold a model space, got {model!r:.200}")
    return model
