"""Strategies of architecture search, with the arguments of NNI 2.x."""

from nni.nas.strategy.hpo import TPEStrategy
from nni.nas.strategy.oneshot import DARTS, ENAS, GumbelDARTS, Proxyless, RandomOneShot
from nni.retiarii.strategy.custom_strategy import BaseStrategy
from nni.retiarii.strategy.legacy_strategies import (
    LegacyGridSearch as GridSearch,
)
from nni.retiarii.strategy.legacy_strategies import (
    LegacyPolicyBasedRL as PolicyBasedRL,
)
from nni.retiarii.strategy.legacy_strategies import (
    LegacyRandom as Random,
)
from nni.retiarii.strategy.legacy_strategies import (
    LegacyRegularizedEvolution as RegularizedEvolution,
)

__all__ = [
    "DARTS",
    "ENAS",
    "BaseStrategy",
    "GridSearch",
    "GumbelDARTS",
    "PolicyBasedRL",
    "Proxyless",
    "Random",
    "RandomOneShot",
    "RegularizedEvolution",
    "TPEStrategy",
]
