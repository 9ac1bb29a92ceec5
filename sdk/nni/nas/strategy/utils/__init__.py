"""Second import path of the helpers of `nni.nas.strategy.sampling`, as documented in NNI 3.0."""

from nni.nas.strategy.sampling import DeduplicationHelper, DuplicationError, RetrySamplingHelper

__all__ = ["DeduplicationHelper", "DuplicationError", "RetrySamplingHelper"]
