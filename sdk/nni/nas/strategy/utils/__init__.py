"""Helpers for strategies of the user's own: duplicates, retries, running models, plain samples."""

from nni.nas.strategy.open_models import OpenModels
from nni.nas.strategy.sample_codec import SampleCodec
from nni.nas.strategy.sampling import DeduplicationHelper, DuplicationError, RetrySamplingHelper

__all__ = [
    "DeduplicationHelper",
    "DuplicationError",
    "OpenModels",
    "RetrySamplingHelper",
    "SampleCodec",
]
