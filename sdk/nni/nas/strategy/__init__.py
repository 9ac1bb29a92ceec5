"""Strategies of architecture search: which models are evaluated.

Names are imported on first use: most strategies need no torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.nas.strategy.base import Strategy, StrategyStatus
    from nni.nas.strategy.grid_search import GridSearch
    from nni.nas.strategy.hpo import TPE, HPOTunerStrategy, TPEStrategy
    from nni.nas.strategy.middleware import Chain
    from nni.nas.strategy.policy.policy_based_rl import PolicyBasedRL
    from nni.nas.strategy.random_search import Random
    from nni.nas.strategy.regularized_evolution import RegularizedEvolution

__all__ = [
    "TPE",
    "Chain",
    "GridSearch",
    "HPOTunerStrategy",
    "PolicyBasedRL",
    "Random",
    "RegularizedEvolution",
    "Strategy",
    "StrategyStatus",
    "TPEStrategy",
]

_HOMES = {
    "TPE": "nni.nas.strategy.hpo",
    "Chain": "nni.nas.strategy.middleware",
    "GridSearch": "nni.nas.strategy.grid_search",
    "HPOTunerStrategy": "nni.nas.strategy.hpo",
    "PolicyBasedRL": "nni.nas.strategy.policy.policy_based_rl",
    "Random": "nni.nas.strategy.random_search",
    "RegularizedEvolution": "nni.nas.strategy.regularized_evolution",
    "Strategy": "nni.nas.strategy.base",
    "StrategyStatus": "nni.nas.strategy.base",
    "TPEStrategy": "nni.nas.strategy.hpo",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home the first time it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nni.nas.strategy' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
