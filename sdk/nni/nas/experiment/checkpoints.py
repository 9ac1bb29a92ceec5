"""Files of a checkpoint: the configuration, and the state of strategy and engine.

The state is plain values and tensors, so that reading it runs no code.
"""

from __future__ import annotations

import difflib
import json
import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from nni.durable_files import replace_durably, write_whole

_logger = logging.getLogger(__name__)

STATE_VERSION: Final = 1
_CONFIG: Final = "config.json"
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})
"""Types that are read without code; a subclass would name its class."""
_STATE: Final = "state.ckpt.torch"


class CheckpointFiles:
    """Files of an experiment's checkpoint in a directory: configuration and state.

    Args:
        directory: made at the first write.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def exists(self) -> bool:
        """Return whether the checkpoint's configuration file exists; its state may be missing."""
        return (self.directory / _CONFIG).is_file()

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Replace `config.json` atomically, unless it is the same.

        Raises:
            OSError: it cannot be written.
        """
        path, text = self.directory / _CONFIG, _text(config)
        if path.is_file() and path.read_text("utf-8") == text:
            return  # a replacement is synchronised with the disk, which takes time
        self.directory.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)

    def read_config(self) -> dict[str, Any]:
        """Return the written configuration; raise FileNotFoundError if there is none.

        Raises:
            FileNotFoundError: none was written.
        """
        config: dict[str, Any] = json.loads((self.directory / _CONFIG).read_text("utf-8"))
        return config

    def log_changes(self, config: Mapping[str, Any]) -> None:
        """Log, as an error, how a configuration differs from the written one, if it does."""
        saved, current = _text(self.read_config()), _text(config)
        if saved != current:
            lines = difflib.unified_diff(
                saved.splitlines(), current.splitlines(), "checkpoint", "now", lineterm="", n=0
            )
            _logger.error(
                "the configuration differs from that of the checkpoint; it is used as it is now:"
                "\n%s",
                "\n".join(lines),
            )

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Replace the state atomically; raise TypeError unless it has plain values and tensors.

        Raises:
            OSError: it cannot be written.
            TypeError: it holds other values than plain ones and tensors, which could not be read.
        """
        import torch  # here, since configurations are read without it

        for path, value in _leaves(dict(state), "state"):
            if type(value) not in _PLAIN and not isinstance(value, torch.Tensor):
                raise TypeError(
                    f"{path} must be a plain value or a tensor, so that reading it runs no code, "
                    f"got {value!r:.100} of type {type(value).__name__}"
                )
        self.directory.mkdir(parents=True, exist_ok=True)
        draft = self.directory / f"{_STATE}.new"
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)  # it has the secret of the search's trials
        torch.save(dict(state), draft)
        replace_durably(draft, self.directory / _STATE)

    def read_state(self) -> dict[str, Any] | None:
        """Return the state; log and return None if none was written."""
        path = self.directory / _STATE
        if not path.is_file():
            _logger.warning("the checkpoint in %s has no state", self.directory)
            return None
        import torch

        state: dict[str, Any] = torch.load(path, weights_only=True)
        return state


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield path and value of a state's parts that are no dict, list or tuple, and of odd keys."""
    if type(value) in {dict, OrderedDict} and isinstance(value, dict):
        for key, item in value.items():
            if type(key) not in _PLAIN:
                yield f"a key of {path}", key
            yield from _leaves(item, f"{path}[{key!r}]")
    elif type(value) in {list, tuple} and isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _text(config: Mapping[str, Any]) -> str:
    return json.dumps(config, indent=2)
