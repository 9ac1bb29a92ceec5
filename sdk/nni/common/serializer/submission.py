"""Documents of models that leave this process, with the limits of neural architecture search."""

import os
import sys
from collections.abc import Mapping

from nni.common.serializer.documents import written
from nni.common.serializer.encoding import Encoder
from nni.common.serializer.payload_size import PayloadTooLarge

VARIABLE = "PICKLE_SIZE_LIMIT"
"""Environment variable with the largest pickle of one object, in bytes."""
DEFAULT_BYTES = 65536
_TRACED_ONLY = (
    ("torch.utils.data", "Dataset"),
    ("torch.utils.data", "DataLoader"),
    ("pytorch_lightning", "Trainer"),
    ("lightning.pytorch", "Trainer"),
)
"""Module and name of classes whose objects never travel as pickles."""


def submission_limit_bytes(environment: Mapping[str, str] = os.environ) -> int:
    """Return the largest pickle in a submitted model, in bytes: `PICKLE_SIZE_LIMIT`, else 64 KB.

    Args:
        environment: variables; `PICKLE_SIZE_LIMIT` replaces the default of 64 KB.

    Raises:
        ValueError: the variable is no number.

    Examples:
        >>> submission_limit_bytes({}), submission_limit_bytes({"PICKLE_SIZE_LIMIT": "100000"})
        (65536, 100000)
    """
    text = environment.get(VARIABLE, str(DEFAULT_BYTES))
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{VARIABLE} must be a number of bytes, got {text!r}") from None


def dump_submission(model: object, *, limit_bytes: int | None = None) -> str:
    """Return the document of a model, with its evaluator, that another process will execute.

    Args:
        model: executable model, or any object.
        limit_bytes: largest pickle of one object; None for `submission_limit_bytes()`.

    Returns:
        The document, for `nni.load`.

    Raises:
        PayloadTooLarge: an object that was not traced is too large; a `ValueError`.
        ValueError: a data set, loader or trainer was not traced, however small it is.

    Examples:
        >>> dump_submission({"depth": 3})
        '{"depth": 3}'
    """
    limit = submission_limit_bytes() if limit_bytes is None else limit_bytes
    encoder = Encoder(pickle_size_limit=limit, never_pickled=_classes_traced_only())
    try:
        return written(encoder, model)
    except PayloadTooLarge as error:
        remedy = (
            "set the environment variable PICKLE_SIZE_LIMIT, in bytes (the default is 64 KB), or "
            "config.spill = True of a NasExperiment; large pickles slow a search down"
        )
        facts = (error.path, error.type_name, error.size_bytes, error.limit_bytes)
        raise PayloadTooLarge(*facts, remedy) from error


def _classes_traced_only() -> tuple[type, ...]:
    """Return the classes of data and trainers, of those packages that are imported."""
    modules = ((sys.modules.get(module), name) for module, name in _TRACED_ONLY)
    found = (getattr(module, name, None) for module, name in modules)
    return tuple(one for one in found if isinstance(one, type))
