"""Middleware between strategies and engines: filters, duplicates, failures, repeated evaluation."""

from nni.nas.strategy.middleware.base import StrategyMiddleware
from nni.nas.strategy.middleware.chain import Chain
from nni.nas.strategy.middleware.deduplication import Deduplication
from nni.nas.strategy.middleware.failure_handler import FailureHandler
from nni.nas.strategy.middleware.filtering import Filter
from nni.nas.strategy.middleware.median_stop import MedianStop
from nni.nas.strategy.middleware.multiple_evaluation import MultipleEvaluation

__all__ = [
    "Chain",
    "Deduplication",
    "FailureHandler",
    "Filter",
    "MedianStop",
    "MultipleEvaluation",
    "StrategyMiddleware",
]
