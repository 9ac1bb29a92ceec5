"""Large payloads of submitted models: files named by the hash of their content.

A document names a payload by its hash. The trial loads the file only if its content has the hash
that the document, which is part of the log, names.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from nni.common.serializer.encoding import BYTES, PICKLE
from nni.durable_files import replace_durably

SPILLED: Final = "sha256:"
"""Begin of a text that stands for a pickle in a file."""
_HASH: Final = re.compile(r"[0-9a-f]{64}")


class PayloadFiles:
    """Store of large payloads in a folder, in files named by their SHA-256.

    Args:
        folder: made at the first write; the trials must reach it under the same path.
        limit_bytes: largest pickle that stays in the document.

    Examples:
        >>> import tempfile
        >>> store = PayloadFiles(Path(tempfile.mkdtemp()), limit_bytes=4)
        >>> document = {"__nni_obj__": "AAECAwQFBgc="}
        >>> store.spill(document)["__nni_obj__"][:14]
        'sha256:8a851ff'
        >>> store.restore(store.spill(document)) == document
        True
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.folder = folder
        self._limit_bytes = limit_bytes

    def spill(self, document: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Return a copy whose pickles over the limit are in files, replaced by their SHA-256.

        Args:
            document: what `nni.dump` wrote, as JSON values; it stays as it is.

        Raises:
            OSError: a file cannot be written.
        """
        return _mapped(document, self._spilled)

    def restore(self, document: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Return a copy with pickles read back from files; raise if one is missing or changed.

        Args:
            document: JSON values.

        Raises:
            ValueError: the name is no hash, or a file has other content than its name says.
            FileNotFoundError: a file is missing.
        """
        return _mapped(document, self._restored)

    def _spilled(self, text: str) -> str:
        prefix = BYTES if text.startswith(BYTES) else ""
        # Four letters stand for three bytes: short texts need not be decoded.
        if len(text) <= self._limit_bytes:
            return text
        data = base64.b64decode(text.removeprefix(prefix))
        if len(data) <= self._limit_bytes:
            return text
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.folder / sha256
        if not path.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{uuid4().hex}")  # other processes may write the same
            draft.write_bytes(data)
            replace_durably(draft, path)
        return f"{prefix}{SPILLED}{sha256}"

    def _restored(self, text: str) -> str:
        prefix = BYTES if text.startswith(BYTES) else ""
        name = text.removeprefix(prefix)
        if not name.startswith(SPILLED):
            return text
        sha256 = name.removeprefix(SPILLED)
        if not _HASH.fullmatch(sha256):
            raise ValueError(f"a payload must be named by its SHA-256, got {sha256!r:.100}")
        path = self.folder / sha256
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"the payload {path} of this model is not on this machine; share the folder, or "
                "set config.spill = False and PICKLE_SIZE_LIMIT"
            ) from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise ValueError(
                f"the payload {path} was changed: it has not the SHA-256 that the log of the "
                "search names; it is not loaded"
            )
        return prefix + base64.b64encode(data).decode("ascii")


def _mapped(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return a document with a function applied to pickles: `__nni_obj__` and `bytes:` texts."""
    if isinstance(value, dict):
        return {
            key: change(item)
            if isinstance(item, str) and (key == PICKLE or item.startswith(BYTES))
            else _mapped(item, change)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return value
