"""Documented older import paths: each re-exports the objects of its home and nothing else."""

import ast
import importlib
from pathlib import Path

import pytest

from nni.spellings import SPELLINGS, exported_name, module_source

SDK = Path(__file__).parents[2] / "sdk" / "nni"
PRUNERS = (
    "ADMMPruner AGPPruner ActivationAPoZRankPruner ActivationMeanRankPruner FPGMPruner "
    "L1NormPruner L2NormPruner LevelPruner LinearPruner LotteryTicketPruner MovementPruner "
    "PruningScheduler SimulatedAnnealingPruner SlimPruner TaylorFOWeightPruner"
)
FIRST_PRUNERS = (
    "ADMMPruner AGPPruner AMCPruner ActivationAPoZRankFilterPruner "
    "ActivationMeanRankFilterPruner AutoCompressPruner FPGMPruner IterativePruner L1FilterPruner "
    "L2FilterPruner LevelPruner LotteryTicketPruner NetAdaptPruner OneshotPruner "
    "SensitivityPruner SimulatedAnnealingPruner SlimPruner TaylorFOWeightFilterPruner "
    "TransformerHeadPruner"
)
TASKS = (
    "AGPTaskGenerator LinearTaskGenerator LotteryTicketTaskGenerator "
    "SimulatedAnnealingTaskGenerator Task TaskGenerator TaskResult "
    "BasicPruner DataCollector SingleHookTrainerBasedDataCollector WeightDataCollector "
    "WeightTrainerBasedDataCollector APoZRankMetricsCalculator DistMetricsCalculator "
    "MeanRankMetricsCalculator MetricsCalculator MultiDataNormMetricsCalculator "
    "NormMetricsCalculator Conv2dDependencyAwareAllocator GlobalSparsityAllocator "
    "NormalSparsityAllocator SparsityAllocator"
)
V1 = "nni.algorithms.compression.pytorch.pruning"
NDS_OPERATIONS = (
    "AVG_POOL_3X3 CONV_1X1 CONV_3X1_1X3 CONV_3X3 CONV_7X1_1X7 DIL_CONV_3X3 DIL_CONV_5X5 "
    "DIL_SEP_CONV_3X3 MAX_POOL_3X3 MAX_POOL_5X5 MAX_POOL_7X7 NONE SEP_CONV_3X3 SEP_CONV_5X5 "
    "SEP_CONV_7X7 SKIP_CONNECT"
)
TABLE = {
    "nni.tuner": "Tuner NoMoreTrialError",
    "nni.assessor": "Assessor AssessResult",
    "nni.runtime.msg_dispatcher_base": "MsgDispatcherBase CommandType MetricType send",
    "nni.runtime.protocol": "CommandType send",
    "nni.algorithms.compression.v2.pytorch.base": (
        "Compressor Pruner Task TaskGenerator TaskResult"
    ),
    "nni.algorithms.compression.v2.pytorch.pruning": PRUNERS,
    "nni.algorithms.compression.v2.pytorch.pruning.tools": TASKS,
    "nni.algorithms.feature_engineering.gbdt_selector": "GBDTSelector",
    "nni.algorithms.feature_engineering.gradient_selector": (
        "FeatureGradientSelector GradientFeatureSelector"
    ),
    "nni.algorithms.hpo.batch_tuner": "BatchTuner",
    "nni.algorithms.hpo.bohb_advisor": "BOHB",
    "nni.algorithms.hpo.curvefitting_assessor": "CurvefittingAssessor",
    "nni.algorithms.hpo.dngo_tuner": "DNGOTuner",
    "nni.algorithms.hpo.evolution_tuner": "EvolutionTuner",
    "nni.algorithms.hpo.gp_tuner": "GPTuner",
    "nni.algorithms.hpo.gridsearch_tuner": "GridSearchTuner",
    "nni.algorithms.hpo.hyperband_advisor": "Hyperband",
    "nni.algorithms.hpo.hyperopt_tuner": "HyperoptTuner",
    "nni.algorithms.hpo.medianstop_assessor": "MedianstopAssessor",
    "nni.algorithms.hpo.metis_tuner": "MetisTuner",
    "nni.algorithms.hpo.networkmorphism_tuner": "NetworkMorphismTuner",
    "nni.algorithms.hpo.networkmorphism_tuner.graph": "Graph json_to_graph",
    "nni.algorithms.hpo.pbt_tuner": "PBTTuner",
    "nni.algorithms.hpo.random_tuner": "RandomTuner",
    "nni.algorithms.hpo.smac_tuner": "SMACTuner",
    "nni.algorithms.hpo.tpe_tuner": "TpeTuner TpeArguments",
    "nni.algorithms.nas.pytorch.fbnet": "FBNetTrainer LookUpTable NASConfig",
    "nni.algorithms.nas.pytorch.proxylessnas": "ProxylessNasTrainer",
    "nni.networkmorphism_tuner.graph": "Graph json_to_graph",
    "nni.nas.benchmarks": "download_benchmark load_benchmark",
    "nni.nas.benchmarks.nasbench101": (
        "CONV1X1_BN_RELU CONV3X3_BN_RELU INPUT MAXPOOL3X3 OUTPUT query_nb101_trial_stats "
        "Nb101IntermediateStats Nb101TrialConfig Nb101TrialStats"
    ),
    "nni.nas.benchmarks.nasbench101.graph_util": (
        "hash_module infer_num_vertices nasbench_format_to_architecture_repr"
    ),
    "nni.nas.benchmarks.nasbench201": (
        "AVG_POOL_3X3 CONV_1X1 CONV_3X3 NONE PRIMITIVES SKIP_CONNECT query_nb201_trial_stats "
        "Nb201IntermediateStats Nb201TrialConfig Nb201TrialStats"
    ),
    "nni.nas.benchmarks.nds": (
        f"{NDS_OPERATIONS} query_nds_trial_stats NdsIntermediateStats NdsTrialConfig NdsTrialStats"
    ),
    "nni.nas.benchmarks.nds.constants": NDS_OPERATIONS,
    "nni.nas.benchmarks.nlp": (
        "query_nlp_trial_stats NlpIntermediateStats NlpTrialConfig NlpTrialStats"
    ),
    "nni.compression.pruning.tools": TASKS,
    "nni.algorithms.compression.pytorch.auto_compress": (
        "AbstractAutoCompressionModule AutoCompressionExperiment "
        "AutoCompressionSearchSpaceGenerator"
    ),
    "nni.algorithms.compression.pytorch.quantization": (
        "BNNQuantizer DoReFaQuantizer LsqQuantizer NaiveQuantizer ObserverQuantizer QAT_Quantizer"
    ),
    "nni.algorithms.compression.pytorch.quantization.quantizers": (
        "BNNQuantizer DoReFaQuantizer LsqQuantizer NaiveQuantizer ObserverQuantizer QAT_Quantizer"
    ),
    "nni.compression.pytorch": (
        "Compressor ModelSpeedup Pruner Quantizer apply_compression_results"
    ),
    "nni.compression.pytorch.compressor": (
        "Compressor LayerInfo Pruner Quantizer QuantGrad QuantType"
    ),
    "nni.compression.pytorch.quantization": (
        "BNNQuantizer DoReFaQuantizer LsqQuantizer NaiveQuantizer ObserverQuantizer QAT_Quantizer"
    ),
    "nni.compression.pytorch.quantization.settings": "set_quant_scheme_dtype",
    "nni.compression.pytorch.quantization_speedup": (
        "CalibrateType Calibrator ModelSpeedupTensorRT"
    ),
    "nni.algorithms.compression.pytorch.pruning": FIRST_PRUNERS,
    f"{V1}.auto_compress_pruner": "AutoCompressPruner",
    f"{V1}.iterative_pruner": (
        "ADMMPruner AGPPruner ActivationAPoZRankFilterPruner ActivationMeanRankFilterPruner "
        "IterativePruner SlimPruner TaylorFOWeightFilterPruner"
    ),
    f"{V1}.lottery_ticket": "LotteryTicketPruner",
    f"{V1}.net_adapt_pruner": "NetAdaptPruner",
    f"{V1}.one_shot_pruner": ("FPGMPruner L1FilterPruner L2FilterPruner LevelPruner OneshotPruner"),
    f"{V1}.sensitivity_pruner": "SensitivityPruner",
    f"{V1}.simulated_annealing_pruner": "SimulatedAnnealingPruner",
    f"{V1}.transformer_pruner": "TransformerHeadPruner",
    "nni.algorithms.compression.pytorch.pruning.structured_pruning_masker": (
        "StructuredWeightMasker"
    ),
    "nni.algorithms.compression.pytorch.pruning.weight_masker": "WeightMasker",
    "nni.compression.pytorch.pruning": PRUNERS,
    "nni.compression.pytorch.pruning.tools": TASKS,
    "nni.compression.pytorch.speedup": "ModelSpeedup",
    "nni.compression.pytorch.utils": "count_flops_params not_safe_to_prune",
    "nni.compression.pytorch.utils.counter": "count_flops_params",
    "nni.compression.pytorch.utils.mask_conflict": (
        "ChannelMaskConflict GroupMaskConflict fix_mask_conflict"
    ),
    "nni.compression.pytorch.utils.sensitivity_analysis": "SensitivityAnalysis",
    "nni.compression.pytorch.utils.shape_dependency": (
        "AttentionWeightDependency ChannelDependency GroupDependency InputChannelDependency "
        "ReshapeDependency"
    ),
    "nni.hpo.configspace": "from_configspace parameters_of to_configspace",
}
"""Older modules in users' code, and the names imported from them."""
FOLDERS = ("algorithms", "networkmorphism_tuner", "runtime")
"""Folders that contain other spellings only."""
ALL = sorted(
    {
        *TABLE,
        *(
            ".".join(("nni", *path.relative_to(SDK).with_suffix("").parts))
            for folder in FOLDERS
            for path in (SDK / folder).rglob("*.py")
            if path.name != "__init__.py"
        ),
    }
)


def tree_of(module: str) -> ast.Module:
    path = SDK.parent.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text("utf-8"))


@pytest.mark.parametrize("module", TABLE)
def test_a_documented_spelling_gives_the_object_of_its_home(module: str) -> None:
    for name in TABLE[module].split():
        found = getattr(importlib.import_module(module), name)
        if isinstance(found, str | tuple):  # a constant does not know its home
            assert found is getattr(importlib.import_module(home_of(module, name)), name)
            continue
        home = importlib.import_module(found.__module__)

        assert found.__module__ not in TABLE
        assert getattr(home, found.__name__) is found


def home_of(module: str, name: str) -> str:
    """Return the home of a name in the table of spellings."""
    return next(one for one in SPELLINGS[module] if exported_name(one) == name).partition(":")[0]


@pytest.mark.parametrize("module", ALL)
def test_another_spelling_holds_imports_and_nothing_else(module: str) -> None:
    docstring, *body = tree_of(module).body

    assert isinstance(docstring, ast.Expr)
    for statement in body:
        names = isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__"
        assert isinstance(statement, ast.ImportFrom) or names, ast.unparse(statement)


def test_every_spelling_is_in_the_table() -> None:
    assert set(ALL) == set(TABLE)


def test_the_one_table_of_spellings_has_what_users_import() -> None:
    written = {module: set(map(exported_name, SPELLINGS[module])) for module in SPELLINGS}

    assert written == {module: set(names.split()) for module, names in TABLE.items()}


@pytest.mark.parametrize("module", SPELLINGS)
def test_a_spelling_is_written_from_the_table(module: str) -> None:
    expected = ast.parse(module_source(module))

    assert imports_of(tree_of(module)) == imports_of(expected), "run ./dev algorithms"
    assert ast.get_docstring(tree_of(module)) == ast.get_docstring(expected)


def imports_of(tree: ast.Module) -> set[str]:
    return {
        f"{statement.module}:{alias.name} as {alias.asname or alias.name}"
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def test_no_home_imports_another_spelling() -> None:
    wrong = [
        f"{path.relative_to(SDK)}: {name}"
        for path in sorted(SDK.rglob("*.py"))
        if path.relative_to(SDK).parts[0] not in FOLDERS
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in imported(node)
        if name in ALL or name.startswith(tuple(f"nni.{folder}" for folder in FOLDERS))
    ]

    assert wrong == []


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return []
