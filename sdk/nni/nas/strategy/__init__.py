"""Strategies of architecture search: which models are evaluated.

Names are imported on first use: most strategies need no torch.
"""

import difflib
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.nas.strategy.base import Strategy, StrategyStatus
    from nni.nas.strategy.grid_search import GridSearch
    from nni.nas.strategy.hpo import TPE, HPOTunerStrategy, TPEStrategy
    from nni.nas.strategy.middleware import Chain
    from nni.nas.strategy.oneshot import (
        DARTS,
        ENAS,
        GumbelDARTS,
        OneShotStrategy,
        Proxyless,
        RandomOneShot,
    )
    from nni.nas.strategy.policy.policy_based_rl import PolicyBasedRL
    from nni.nas.strategy.random_search import Random
    from nni.nas.strategy.regularized_evolution import RegularizedEvolution

__all__ = [
    "DARTS",
    "ENAS",
    "TPE",
    "Chain",
    "GridSearch",
    "GumbelDARTS",
    "HPOTunerStrategy",
    "OneShotStrategy",
    "PolicyBasedRL",
    "Proxyless",
    "Random",
    "RandomOneShot",
    "RegularizedEvolution",
    "Strategy",
    "StrategyStatus",
    "TPEStrategy",
]

_HOMES = {
    "Chain": "nni.nas.strategy.middleware",
    "DARTS": "nni.nas.strategy.oneshot",
    "ENAS": "nni.nas.strategy.oneshot",
    "GridSearch": "nni.nas.strategy.grid_search",
    "GumbelDARTS": "nni.nas.strategy.oneshot",
    "HPOTunerStrategy": "nni.nas.strategy.hpo",
    "OneShotStrategy": "nni.nas.strategy.oneshot",
    "PolicyBasedRL": "nni.nas.strategy.policy.policy_based_rl",
    "Proxyless": "nni.nas.strategy.oneshot",
    "Random": "nni.nas.strategy.random_search",
    "RandomOneShot": "nni.nas.strategy.oneshot",
    "RegularizedEvolution": "nni.nas.strategy.regularized_evolution",
    "Strategy": "nni.nas.strategy.base",
    "StrategyStatus": "nni.nas.strategy.base",
    "TPE": "nni.nas.strategy.hpo",
    "TPEStrategy": "nni.nas.strategy.hpo",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home the first time it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nni.nas.strategy' has no attribute {name!r}{closest(name)}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def closest(name: str) -> str:
    """Return a hint for a message: strategies of a similar name; empty if there is none.

    Args:
        name: what was written.

    Returns:
        Names, the most similar one first; empty if none is similar.

    Examples:
        >>> closest("GridSerch")
        '; did you mean GridSearch?'
        >>> closest("nothing")
        ''
    """
    by_lower = {one.lower(): one for one in __all__}
    found = difflib.get_close_matches(name.lower(), by_lower, n=3)
    return f"; did you mean {' or '.join(by_lower[one] for one in found)}?" if found else ""


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
