"""Named frameworks in a YAML file: a tuner with its architecture and limit.

```yaml
DemoTuner:
  extends: NNI
  params:
    tuner_type: DemoTuner
    arch_type: random_forest    # or mlp
    limit_type: ntrials         # or time
    trial_limit: 100
```
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from nni_benchmark.automl.runner import Framework

_UNLIMITED: Final = 10**9
_KEYS: Final = frozenset({"tuner_type", "arch_type", "limit_type", "trial_limit"})

TUNERS: Final = (
    "TPE", "Random", "Anneal", "Evolution", "SMAC", "GPTuner", "MetisTuner", "DNGOTuner",
)  # fmt: skip
"""Tuners of the published comparison."""


def read_frameworks(path: Path, *, time_limit_s: float = math.inf) -> dict[str, Framework]:
    """Parse a YAML file of frameworks (tuner, model, limits) by name; raise for a wrong entry.

    Args:
        path: of the file.
        time_limit_s: of a search of those whose `limit_type` is `time`.

    Raises:
        OSError: the file cannot be read.
        ValueError: an entry is wrong; the text names it.
    """
    content = yaml.safe_load(path.read_text("utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a dict of frameworks, got {content!r:.100}")  # noqa: TRY004 - one type for all faults of an input
    return {
        str(name): _framework(str(name), entry, path, time_limit_s)
        for name, entry in content.items()
    }


def _framework(name: str, entry: Any, path: Path, time_limit_s: float) -> Framework:  # noqa: ANN401 - content of a file
    if not isinstance(entry, dict) or entry.get("extends", "NNI") != "NNI":
        raise ValueError(f"{path}, {name}: must be a dict that extends NNI, got {entry!r:.100}")
    given: Mapping[str, Any] = entry.get("params") or {}
    unknown = given.keys() - _KEYS
    if unknown:
        known = ", ".join(sorted(_KEYS))
        raise ValueError(f"{path}, {name}: params must be of {known}; got {min(unknown)!r}")
    limit = given.get("limit_type", "ntrials")
    if limit not in {"ntrials", "time"}:
        raise ValueError(f"{path}, {name}: limit_type must be ntrials or time, got {limit!r}")
    by_time = limit == "time"
    return Framework(
        given.get("tuner_type", name),
        given.get("arch_type", "random_forest"),
        _UNLIMITED if by_time else given.get("trial_limit", 100),
        time_limit_s if by_time else math.inf,
        name=name,
    )


def frameworks_of(
    names: Sequence[str], known: Mapping[str, Framework], default: Framework
) -> list[Framework]:
    """Return a framework per name, of the file or with default limits; all `TUNERS` without names.

    Args:
        names: none for the published field.
        known: of a file.
        default: whose limits and architecture a bare tuner gets.

    Raises:
        ValueError: a name is neither.
    """
    return [
        known.get(name)
        or Framework(name, default.architecture, default.trials, default.time_limit_s, default.seed)
        for name in (names or TUNERS)
    ]
