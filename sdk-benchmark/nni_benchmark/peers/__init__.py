"""Adapters of other libraries to the protocol of `nni_benchmark.searcher`.

Each is imported when it searches; none is needed to install NNI.
"""

from __future__ import annotations

from nni_benchmark.peers.hyperopt_peer import HyperoptSearcher
from nni_benchmark.peers.optuna_peer import OptunaSearcher
from nni_benchmark.peers.smac_peer import SmacSearcher
from nni_benchmark.peers.syne_tune_peer import SyneTuneSearcher
from nni_benchmark.searcher import Searcher

__all__ = ["peer_searchers"]


def peer_searchers() -> tuple[Searcher, ...]:
    """Return a tuple of searchers, one per algorithm of Optuna, Hyperopt, SMAC and Syne Tune."""
    return (
        OptunaSearcher("tpe"),
        OptunaSearcher("tpe-univariate"),
        OptunaSearcher("tpe-group"),
        OptunaSearcher("gp"),
        OptunaSearcher("cma"),
        OptunaSearcher("nsga2"),
        OptunaSearcher("random"),
        HyperoptSearcher(),
        SmacSearcher(),
        SyneTuneSearcher("kde"),
        SyneTuneSearcher("bore"),
    )
