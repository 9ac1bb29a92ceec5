"""Table of documented import paths, most of NNI 2.x and 3.0, and the homes of their names.

`./dev algorithms` writes a module for each row, which re-exports the names and holds nothing else,
so that type checkers and editors follow it. A name without a difference is a row here; a class
whose arguments differ is an adapter in its home.
"""

import re
from collections.abc import Mapping
from posixpath import commonpath
from typing import Final

_NAMED_HOMES: Final = 2
"""Largest number of homes that a docstring names; of more it names their package."""

_QUANTIZERS: Final = (
    "nni.compression.quantization.legacy_adapters:LegacyBNNQuantizer as BNNQuantizer",
    "nni.compression.quantization.legacy_adapters:LegacyDoReFaQuantizer as DoReFaQuantizer",
    "nni.compression.quantization.legacy_adapters:LegacyLsqQuantizer as LsqQuantizer",
    "nni.compression.quantization.legacy_adapters:LegacyNaiveQuantizer as NaiveQuantizer",
    "nni.compression.quantization.legacy_adapters:LegacyObserverQuantizer as ObserverQuantizer",
    "nni.compression.quantization.legacy_adapters:LegacyQATQuantizer as QAT_Quantizer",
)


def _names(home: str, *names: str) -> tuple[str, ...]:
    """Return the table entries of several names of one module below `nni.compression`."""
    return tuple(f"nni.compression.{home}:{name}" for name in names)


_ONE_SHOT: Final = (
    *_names("pruning.auto_compress_pruner", "AutoCompressPruner"),
    *_names(
        "pruning.legacy.annealing_pruner",
        "AnnealingPruner as SimulatedAnnealingPruner",
    ),
    *_names(
        "pruning.legacy.epoch_pruners",
        "EpochADMMPruner as ADMMPruner",
        "EpochAGPPruner as AGPPruner",
        "EpochPruner as IterativePruner",
    ),
    *_names(
        "pruning.legacy.model_pruners",
        "LegacyAMCPruner as AMCPruner",
        "LegacyNetAdaptPruner as NetAdaptPruner",
        "LegacySensitivityPruner as SensitivityPruner",
        "LegacyTransformerHeadPruner as TransformerHeadPruner",
    ),
    *_names("pruning.legacy.one_shot_pruners", "one_shot_pruner as OneshotPruner"),
    *_names(
        "pruning.legacy.one_shot_training_pruners",
        "OneShotActivationAPoZRankFilterPruner as ActivationAPoZRankFilterPruner",
        "OneShotActivationMeanRankFilterPruner as ActivationMeanRankFilterPruner",
        "OneShotSlimPruner as SlimPruner",
        "OneShotTaylorFOWeightFilterPruner as TaylorFOWeightFilterPruner",
    ),
    *_names(
        "pruning.legacy.one_shot_weight_pruners",
        "OneShotFPGMPruner as FPGMPruner",
        "OneShotL1FilterPruner as L1FilterPruner",
        "OneShotL2FilterPruner as L2FilterPruner",
        "OneShotLevelPruner as LevelPruner",
    ),
    *_names("pruning.legacy.ticket_pruner", "TicketPruner as LotteryTicketPruner"),
)
"""Pruners of NNI 1.x."""

_BASIC: Final = (
    *_names(
        "pruning.iterative_pruner",
        "IterativeAGPPruner as AGPPruner",
        "IterativeLinearPruner as LinearPruner",
    ),
    *_names(
        "pruning.legacy.basic_pruners",
        "LegacyADMMPruner as ADMMPruner",
        "LegacyActivationAPoZRankPruner as ActivationAPoZRankPruner",
        "LegacyActivationMeanRankPruner as ActivationMeanRankPruner",
        "LegacyFPGMPruner as FPGMPruner",
        "LegacyL1NormPruner as L1NormPruner",
        "LegacyL2NormPruner as L2NormPruner",
        "LegacySlimPruner as SlimPruner",
        "LegacyTaylorFOWeightPruner as TaylorFOWeightPruner",
    ),
    *_names("pruning.level_pruner", "LevelPruner"),
    *_names("pruning.lottery_ticket_pruner", "LotteryTicketPruner"),
    *_names("pruning.movement_pruner", "MovementPruner"),
    *_names("pruning.simulated_annealing_pruner", "SimulatedAnnealingPruner"),
    *_names("scheduling.pruning_scheduler", "PruningScheduler"),
)
"""Pruners of NNI 2.x."""


_TOOLS: Final = (
    "nni.compression.scheduling.annealing_generator:SimulatedAnnealingTaskGenerator",
    "nni.compression.scheduling.growth_generators:AGPTaskGenerator",
    "nni.compression.scheduling.growth_generators:LinearTaskGenerator",
    "nni.compression.scheduling.growth_generators:LotteryTicketTaskGenerator",
    "nni.compression.scheduling.task:Task",
    "nni.compression.scheduling.task:TaskResult",
    "nni.compression.scheduling.task_generator:TaskGenerator",
    *_names(
        "pruning.legacy.data_collectors",
        "DataCollector",
        "SingleHookTrainerBasedDataCollector",
        "WeightDataCollector",
        "WeightTrainerBasedDataCollector",
    ),
    *_names(
        "pruning.legacy.metrics_calculators",
        "APoZRankMetricsCalculator",
        "DistMetricsCalculator",
        "MeanRankMetricsCalculator",
        "MetricsCalculator",
        "MultiDataNormMetricsCalculator",
        "NormMetricsCalculator",
    ),
    *_names(
        "pruning.legacy.sparsity_allocators",
        "Conv2dDependencyAwareAllocator",
        "GlobalSparsityAllocator",
        "NormalSparsityAllocator",
        "SparsityAllocator",
    ),
    *_names("pruning.legacy.tool_pruner", "ToolPruner as BasicPruner"),
)
"""Parts of pruners, and tasks of the pruning in several iterations."""


def _home(*names: str) -> tuple[str, ...]:
    """Return the entries of some pruners of NNI 1.x, by their names in NNI 1.x."""
    return tuple(one for one in _ONE_SHOT if re.split("[: ]", one)[-1] in names)


_NDS_OPERATIONS: Final = (
    "AVG_POOL_3X3 CONV_1X1 CONV_3X1_1X3 CONV_3X3 CONV_7X1_1X7 DIL_CONV_3X3 DIL_CONV_5X5 "
    "DIL_SEP_CONV_3X3 MAX_POOL_3X3 MAX_POOL_5X5 MAX_POOL_7X7 NONE SEP_CONV_3X3 SEP_CONV_5X5 "
    "SEP_CONV_7X7 SKIP_CONNECT"
)


def _benchmark(name: str, constants: str, query: str, records: str) -> tuple[str, ...]:
    """Return the entries of a benchmark of architecture search, by the modules of their homes."""
    homes = {"constants": constants, "query": query, "records": records}
    return tuple(
        f"nni.nas.benchmark.{name}.{home}:{one}"
        for home, names in homes.items()
        for one in names.split()
    )


SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "nni.algorithms.compression.pytorch.pruning": _ONE_SHOT,
    "nni.algorithms.compression.pytorch.pruning.auto_compress_pruner": _home(
        "AutoCompressPruner",
    ),
    "nni.algorithms.compression.pytorch.pruning.iterative_pruner": _home(
        "ADMMPruner",
        "AGPPruner",
        "ActivationAPoZRankFilterPruner",
        "ActivationMeanRankFilterPruner",
        "IterativePruner",
        "SlimPruner",
        "TaylorFOWeightFilterPruner",
    ),
    "nni.algorithms.compression.pytorch.pruning.lottery_ticket": _home("LotteryTicketPruner"),
    "nni.algorithms.compression.pytorch.pruning.net_adapt_pruner": _home("NetAdaptPruner"),
    "nni.algorithms.compression.pytorch.pruning.one_shot_pruner": _home(
        "FPGMPruner",
        "L1FilterPruner",
        "L2FilterPruner",
        "LevelPruner",
        "OneshotPruner",
    ),
    "nni.algorithms.compression.pytorch.pruning.sensitivity_pruner": _home("SensitivityPruner"),
    "nni.algorithms.compression.pytorch.pruning.simulated_annealing_pruner": _home(
        "SimulatedAnnealingPruner"
    ),
    "nni.algorithms.compression.pytorch.pruning.structured_pruning_masker": (
        "nni.compression.pruning.legacy.weight_masker:StructuredWeightMasker",
    ),
    "nni.algorithms.compression.pytorch.pruning.transformer_pruner": _home("TransformerHeadPruner"),
    "nni.algorithms.compression.pytorch.pruning.weight_masker": (
        "nni.compression.pruning.legacy.weight_masker:WeightMasker",
    ),
    "nni.algorithms.compression.v2.pytorch.base": (
        "nni.compression.base.compressor:Compressor",
        "nni.compression.base.pruner:Pruner",
        "nni.compression.scheduling.task:Task",
        "nni.compression.scheduling.task:TaskResult",
        "nni.compression.scheduling.task_generator:TaskGenerator",
    ),
    "nni.algorithms.compression.v2.pytorch.pruning": _BASIC,
    "nni.algorithms.compression.v2.pytorch.pruning.tools": _TOOLS,
    "nni.algorithms.compression.pytorch.auto_compress": (
        "nni.compression.experiment.auto_compression:AutoCompressionExperiment",
        "nni.compression.experiment.interface:AbstractAutoCompressionModule",
        "nni.compression.experiment.search_space:AutoCompressionSearchSpaceGenerator",
    ),
    "nni.algorithms.compression.pytorch.quantization": _QUANTIZERS,
    "nni.algorithms.compression.pytorch.quantization.quantizers": _QUANTIZERS,
    "nni.algorithms.feature_engineering.gbdt_selector": (
        "nni.feature_engineering.gbdt_selector:GBDTSelector",
    ),
    "nni.algorithms.feature_engineering.gradient_selector": (
        "nni.feature_engineering.gradient_selector:FeatureGradientSelector",
        "nni.feature_engineering.gradient_selector:GradientFeatureSelector",
    ),
    "nni.algorithms.hpo.batch_tuner": ("nni.hpo.tuners.batch:BatchTuner",),
    "nni.algorithms.hpo.bohb_advisor": ("nni.hpo.advisors.bohb:BOHB",),
    "nni.algorithms.hpo.curvefitting_assessor": (
        "nni.hpo.assessors.curve_fitting:CurvefittingAssessor",
    ),
    "nni.algorithms.hpo.dngo_tuner": ("nni.hpo.tuners.dngo:DNGOTuner",),
    "nni.algorithms.hpo.evolution_tuner": ("nni.hpo.tuners.evolution:EvolutionTuner",),
    "nni.algorithms.hpo.gp_tuner": ("nni.hpo.tuners.gp:GPTuner",),
    "nni.algorithms.hpo.gridsearch_tuner": ("nni.hpo.tuners.grid_search:GridSearchTuner",),
    "nni.algorithms.hpo.hyperband_advisor": ("nni.hpo.advisors.hyperband:Hyperband",),
    "nni.algorithms.hpo.hyperopt_tuner": ("nni.hpo.tuners.hyperopt_tuner:HyperoptTuner",),
    "nni.algorithms.hpo.medianstop_assessor": ("nni.hpo.assessors.median_stop:MedianstopAssessor",),
    "nni.algorithms.hpo.metis_tuner": ("nni.hpo.tuners.metis:MetisTuner",),
    "nni.algorithms.hpo.networkmorphism_tuner": (
        "nni.hpo.tuners.network_morphism.tuner:NetworkMorphismTuner",
    ),
    "nni.algorithms.hpo.networkmorphism_tuner.graph": (
        "nni.hpo.tuners.network_morphism.graph:Graph",
        "nni.hpo.tuners.network_morphism.graph:json_to_graph",
    ),
    "nni.algorithms.hpo.pbt_tuner": ("nni.hpo.tuners.pbt:PBTTuner",),
    "nni.algorithms.hpo.random_tuner": ("nni.hpo.tuners.random_search:RandomTuner",),
    "nni.algorithms.hpo.smac_tuner": ("nni.hpo.tuners.smac:SMACTuner",),
    "nni.algorithms.hpo.tpe_tuner": (
        "nni.hpo.tuners.tpe:TpeArguments",
        "nni.hpo.tuners.tpe:TPETuner as TpeTuner",
    ),
    "nni.assessor": ("nni.hpo.base:Assessor", "nni.hpo.base:AssessResult"),
    "nni.compression.pruning.tools": _TOOLS,
    "nni.compression.pytorch": (
        "nni.compression.base.compressor:Compressor",
        "nni.compression.pruning.legacy.mask_pruner:LegacyPruner as Pruner",
        "nni.compression.quantization.legacy_quantizer:LegacyQuantizer as Quantizer",
        "nni.compression.speedup.model_speedup:ModelSpeedup",
        "nni.compression.utils.compression_results:apply_compression_results",
    ),
    "nni.compression.pytorch.compressor": (
        "nni.compression.quantization.legacy_quantizer:LegacyQuantizer as Quantizer",
        "nni.compression.quantization.quant_grad:QuantGrad",
        "nni.compression.quantization.quant_grad:QuantType",
        "nni.compression.base.compressor:Compressor",
        "nni.compression.base.compressor:LayerInfo",
        "nni.compression.pruning.legacy.mask_pruner:LegacyPruner as Pruner",
    ),
    "nni.compression.pytorch.pruning": _BASIC,
    "nni.compression.pytorch.pruning.tools": _TOOLS,
    "nni.compression.pytorch.quantization": _QUANTIZERS,
    "nni.compression.pytorch.quantization_speedup": (
        *_names("quantization_speedup.calibrator", "CalibrateType", "Calibrator"),
        *_names("quantization_speedup.model_speedup_tensorrt", "ModelSpeedupTensorRT"),
    ),
    "nni.compression.pytorch.quantization.settings": (
        "nni.compression.config.quantization_defaults:set_quant_scheme_dtype",
    ),
    "nni.compression.pytorch.speedup": ("nni.compression.speedup.model_speedup:ModelSpeedup",),
    "nni.compression.pytorch.utils": (
        "nni.compression.speedup.counter:count_flops_params",
        "nni.compression.utils.shape_dependency:not_safe_to_prune",
    ),
    "nni.compression.pytorch.utils.counter": (
        "nni.compression.speedup.counter:count_flops_params",
    ),
    "nni.compression.pytorch.utils.mask_conflict": (
        "nni.compression.utils.mask_conflict:ChannelMaskConflict",
        "nni.compression.utils.mask_conflict:GroupMaskConflict",
        "nni.compression.utils.mask_conflict:fix_mask_conflict",
    ),
    "nni.compression.pytorch.utils.sensitivity_analysis": (
        "nni.compression.pruning.sensitivity_analysis:SensitivityAnalysis",
    ),
    "nni.compression.pytorch.utils.shape_dependency": (
        "nni.compression.utils.shape_dependency:AttentionWeightDependency",
        "nni.compression.utils.shape_dependency:ChannelDependency",
        "nni.compression.utils.shape_dependency:GroupDependency",
        "nni.compression.utils.shape_dependency:InputChannelDependency",
        "nni.compression.utils.shape_dependency:ReshapeDependency",
    ),
    "nni.hpo.configspace": (
        "nni.hpo.space.configspace:from_configspace",
        "nni.hpo.space.configspace:parameters_of",
        "nni.hpo.space.configspace:to_configspace",
    ),
    "nni.nas.benchmarks": (
        "nni.nas.benchmark.catalogue:load_benchmark",
        "nni.nas.benchmark.files:download_benchmark",
    ),
    "nni.nas.benchmarks.nasbench101": _benchmark(
        "nasbench101",
        "CONV1X1_BN_RELU CONV3X3_BN_RELU INPUT MAXPOOL3X3 OUTPUT",
        "query_nb101_trial_stats",
        "Nb101IntermediateStats Nb101TrialConfig Nb101TrialStats",
    ),
    "nni.nas.benchmarks.nasbench101.graph_util": (
        "nni.nas.benchmark.nasbench101.graph_util:hash_module",
        "nni.nas.benchmark.nasbench101.graph_util:infer_num_vertices",
        "nni.nas.benchmark.nasbench101.graph_util:nasbench_format_to_architecture_repr",
    ),
    "nni.nas.benchmarks.nasbench201": _benchmark(
        "nasbench201",
        "AVG_POOL_3X3 CONV_1X1 CONV_3X3 NONE PRIMITIVES SKIP_CONNECT",
        "query_nb201_trial_stats",
        "Nb201IntermediateStats Nb201TrialConfig Nb201TrialStats",
    ),
    "nni.nas.benchmarks.nds": _benchmark(
        "nds",
        _NDS_OPERATIONS,
        "query_nds_trial_stats",
        "NdsIntermediateStats NdsTrialConfig NdsTrialStats",
    ),
    "nni.nas.benchmarks.nds.constants": _benchmark("nds", _NDS_OPERATIONS, "", ""),
    "nni.nas.benchmarks.nlp": _benchmark(
        "nlp",
        "",
        "query_nlp_trial_stats",
        "NlpIntermediateStats NlpTrialConfig NlpTrialStats",
    ),
    "nni.algorithms.nas.pytorch.fbnet": (
        "nni.retiarii.oneshot.pytorch.fbnet:FBNetTrainer",
        "nni.retiarii.oneshot.pytorch.fbnet:LookUpTable",
        "nni.retiarii.oneshot.pytorch.fbnet:NASConfig",
    ),
    "nni.algorithms.nas.pytorch.proxylessnas": (
        "nni.retiarii.oneshot.pytorch.proxyless_nas_trainer:ProxylessNasTrainer",
    ),
    "nni.networkmorphism_tuner.graph": (
        "nni.hpo.tuners.network_morphism.graph:Graph",
        "nni.hpo.tuners.network_morphism.graph:json_to_graph",
    ),
    "nni.runtime.msg_dispatcher_base": (
        "nni.hpo.advisor:MsgDispatcherBase",
        "nni.hpo.commands:CommandType",
        "nni.hpo.commands:MetricType",
        "nni.hpo.commands:send",
    ),
    "nni.runtime.protocol": ("nni.hpo.commands:CommandType", "nni.hpo.commands:send"),
    "nni.tuner": ("nni.errors:NoMoreTrialError", "nni.hpo.base:Tuner"),
}
"""Module to the names that it exports, each as `home:name` or `home:name as other`."""

_HOMES_WIDTH: Final = 70
"""Longest list of homes that the first line of a module has room for."""

_LIST_WIDTH: Final = 90
"""Longest list of names that a line has room for."""


def exported_name(entry: str) -> str:
    """Return the exported name in a table entry `home:name as other`: the last one.

    Examples:
        >>> exported_name("nni.hpo.tuners.tpe:TPETuner as TpeTuner")
        'TpeTuner'
    """
    return entry.partition(":")[2].split(" as ")[-1]


def module_source(module: str) -> str:
    """Return the source of a module that re-exports the names of a documented import path.

    Args:
        module: key of the table.
    """
    entries = SPELLINGS[module]
    homes = sorted({entry.partition(":")[0] for entry in entries})
    imports = "".join(
        f"from {home} import {name}\n"
        for home, _, name in (entry.partition(":") for entry in entries)
    )
    names = [f'"{name}"' for name in sorted(map(exported_name, entries))]
    exported = f"[{', '.join(names)}]"
    if len(exported) > _LIST_WIDTH:
        exported = "[\n    " + ",\n    ".join(names) + ",\n]"
    if len(homes) > _NAMED_HOMES:
        homes = [commonpath([home.replace(".", "/") for home in homes]).replace("/", ".")]
    home_text = " and ".join(f"`{home}`" for home in homes)
    if len(home_text) > _HOMES_WIDTH:
        home_text = "the names below"
    return (
        f'"""Documented import path for {home_text}.\n\n'
        "Written by `./dev algorithms` from `nni.spellings`; do not edit.\n"
        f'"""\n\n{imports}\n__all__ = {exported}\n'
    )
