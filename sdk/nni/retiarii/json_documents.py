"""Functions of NNI 2.x that write and read JSON: `json_dump` and its relatives."""

from typing import IO, Any

import nni
from nni.retiarii.deprecation import warn_once


def json_dumps(obj: object, **options: Any) -> str:  # noqa: ANN401 - those of `nni.dump`
    """Return an object as JSON; write `nni.dump(obj)`.

    Args:
        obj: any object.
        **options: those of `nni.dump`.
    """
    warn_once("json_dumps", "nni.dump")
    return nni.dump(obj, **options)


def json_dump(obj: object, fp: IO[str], **options: Any) -> None:  # noqa: ANN401 - as above
    """Write an object to a file as JSON; write `nni.dump(obj, fp)`.

    Args:
        obj: any object.
        fp: text file.
        **options: those of `nni.dump`.
    """
    warn_once("json_dump", "nni.dump")
    nni.dump(obj, fp, **options)


def json_loads(string: str | bytes, **options: Any) -> Any:  # noqa: ANN401 - any object
    """Return the object of a JSON document; write `nni.load(string)`.

    Args:
        string: the document.
        **options: those of `nni.load`.
    """
    warn_once("json_loads", "nni.load")
    return nni.load(string, **options)


def json_load(fp: IO[str] | IO[bytes], **options: Any) -> Any:  # noqa: ANN401 - any object
    """Return the object of a JSON file; write `nni.load(fp=fp)`.

    Args:
        fp: the file.
        **options: those of `nni.load`.
    """
    warn_once("json_load", "nni.load")
    return nni.load(fp=fp, **options)
