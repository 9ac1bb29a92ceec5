"""Context in which networks of NNI 2.x are built as an exported architecture: `fixed_arch`."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from nni.nas.space import model_context
from nni.retiarii.deprecation import warn_once
from nni.retiarii.wrapped_models import MutationLabels

_logger = logging.getLogger(__name__)


def fixed_arch(
    fixed_arch: str | Path | Mapping[str, Any],
    verbose: bool = True,  # noqa: FBT001, FBT002 - documented signature
) -> AbstractContextManager[None]:
    """Return a context that builds networks as an architecture (dict or file); now `model_context`.

    Automatic labels of choices in it start at `_mutation_1`, as those of the first network did.

    Args:
        fixed_arch: value of each label, or the path of a JSON file with them.
        verbose: whether the architecture is logged.

    Returns:
        A context manager.

    Raises:
        TypeError: the file holds no JSON object.
    """
    warn_once("fixed_arch", "nni.nas.space.model_context")
    if isinstance(fixed_arch, Mapping):
        sample: Any = dict(fixed_arch)
    else:
        sample = json.loads(Path(fixed_arch).read_text("utf-8"))
    if not isinstance(sample, Mapping):
        raise TypeError(f"fixed_arch must be a JSON object of labels, got {sample!r:.200}")
    if verbose:
        _logger.info("fixed architecture: %s", sample)
    return _context(dict(sample))


@contextmanager
def _context(sample: dict[str, Any]) -> Iterator[None]:
    with model_context(sample), MutationLabels():
        yield
