"""Every one-shot strategy passes the suite that `nni.testing.oneshot_strategies` ships."""

import pytest

from nni.nas.strategy.oneshot import (
    DARTS,
    ENAS,
    GumbelDARTS,
    OneShotStrategy,
    Proxyless,
    RandomOneShot,
)
from nni.testing.oneshot_strategies import OneShotStrategyConformance


@pytest.mark.claim("nas", 52)
@pytest.mark.claim("nas", 53)
class TestDARTS(OneShotStrategyConformance):
    def make(self) -> OneShotStrategy:
        return DARTS(arc_learning_rate=0.05)


class TestUnrolledDARTS(OneShotStrategyConformance):
    def make(self) -> OneShotStrategy:
        return DARTS(arc_learning_rate=0.05, unrolled=True)


class TestGumbelDARTS(OneShotStrategyConformance):
    def make(self) -> OneShotStrategy:
        return GumbelDARTS(arc_learning_rate=0.05)


class TestProxyless(OneShotStrategyConformance):
    def make(self) -> OneShotStrategy:
        return Proxyless(arc_learning_rate=0.05)


class TestENAS(OneShotStrategyConformance):
    def make(self) -> OneShotStrategy:
        return ENAS(batches_per_update=4, reward_metric_name="default")


class TestRandomOneShot(OneShotStrategyConformance):
    prefers = False

    def make(self) -> OneShotStrategy:
        return RandomOneShot()
