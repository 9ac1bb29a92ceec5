"""Strategies that train one network with the weights of all architectures."""

from nni.nas.strategy.oneshot.base import OneShotStrategy
from nni.nas.strategy.oneshot.darts import DARTS
from nni.nas.strategy.oneshot.enas import ENAS
from nni.nas.strategy.oneshot.gumbel_darts import GumbelDARTS
from nni.nas.strategy.oneshot.proxyless import Proxyless
from nni.nas.strategy.oneshot.random_one_shot import RandomOneShot

__all__ = ["DARTS", "ENAS", "GumbelDARTS", "OneShotStrategy", "Proxyless", "RandomOneShot"]
