"""Analysis of models for compression: size, latency, sensitivity and dependencies."""

from nni.compression.evaluators.perplexity import perplexity
from nni.compression.pruning.sensitivity_analysis import SensitivityAnalysis
from nni.compression.speedup.counter import count_flops_params
from nni.compression.utils.compression_results import apply_compression_results
from nni.compression.utils.dependency_groups import (
    auto_set_denpendency_group_ids,
    auto_set_dependency_group_ids,
)
from nni.compression.utils.latency import (
    Latency,
    LatencyComparison,
    compare_latency,
    measure_latency,
)
from nni.compression.utils.mask_conflict import (
    ChannelMaskConflict,
    GroupMaskConflict,
    fix_channel_mask_conflict,
    fix_group_mask_conflict,
    fix_mask_conflict,
)
from nni.compression.utils.shape_dependency import (
    AttentionWeightDependency,
    ChannelDependency,
    GroupDependency,
    InputChannelDependency,
    ReshapeDependency,
    not_safe_to_prune,
)

__all__ = [
    "AttentionWeightDependency",
    "ChannelDependency",
    "ChannelMaskConflict",
    "GroupDependency",
    "GroupMaskConflict",
    "InputChannelDependency",
    "Latency",
    "LatencyComparison",
    "ReshapeDependency",
    "SensitivityAnalysis",
    "apply_compression_results",
    "auto_set_denpendency_group_ids",
    "auto_set_dependency_group_ids",
    "compare_latency",
    "count_flops_params",
    "fix_channel_mask_conflict",
    "fix_group_mask_conflict",
    "fix_mask_conflict",
    "measure_latency",
    "not_safe_to_prune",
    "perplexity",
]
