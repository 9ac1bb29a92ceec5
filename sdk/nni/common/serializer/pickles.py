"""Pickles: the one module of the library that makes and opens them.

Opening a pickle runs code that it names. Callers open those that processes of the same user wrote:
documents of `nni.dump`, and checkpoints.
"""

import base64
from pathlib import Path
from typing import Any

import cloudpickle


def pickled(value: object) -> bytes:
    """Return an object as a pickle; functions and classes that cannot be imported by value.

    Args:
        value: any object.
    """
    data: bytes = cloudpickle.dumps(value)
    return data


def unpickled(data: bytes) -> Any:  # noqa: ANN401 - any object
    """Return the object in a pickle.

    Args:
        data: result of `pickled`.
    """
    return cloudpickle.loads(data)


def as_text(data: bytes) -> str:
    """Return bytes in letters.

    Args:
        data: any bytes.
    """
    return base64.b64encode(data).decode("ascii")


def from_text(text: str) -> Any:  # noqa: ANN401 - any object
    """Return the object in a pickle that is written in letters.

    Args:
        text: result of `as_text`.
    """
    return unpickled(base64.b64decode(text))


def load_torch_file(path: Path) -> Any:  # noqa: ANN401 - any object
    """Unpickle a trusted file of `torch.save`, whose code is run, with tensors on the CPU.

    Args:
        path: the file.
    """
    import torch

    return torch.load(path, map_location="cpu", weights_only=False)
