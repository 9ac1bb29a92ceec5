"""What is known of the named algorithms, and the table of the built-in ones."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from nni.hpo.encoding.numeric_space import METIS_TYPES, NUMERIC_TYPES
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.validation import (
    OPTIMIZE_MODE,
    SEED,
    ArgumentRule,
    ClassArgsValidator,
    TableValidator,
    boolean,
    nullable,
    number,
    one_of,
    path,
    positive_numbers,
    required,
    whole,
)
from nni.hpo.space.parser import ALL_TYPES

Kind: TypeAlias = Literal["tuner", "assessor", "advisor"]


@dataclass(frozen=True, slots=True)
class AlgorithmEntry:
    """What is known of one named algorithm without importing it."""

    name: str
    """The name users write, case-sensitive."""
    kind: Kind
    class_path: str
    """`module:class` of what is built."""
    documented_path: str
    """`module.class` under which the class is documented."""
    validator: ClassArgsValidator | str = field(default_factory=ClassArgsValidator)
    """Checks `classArgs`; `module:class` if it is to be imported first."""
    defaults: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))
    """Arguments for the constructor that the user did not give."""
    types: tuple[str, ...] = ALL_TYPES
    """The `_type`s of the search space that it supports; tuners only."""
    nested: bool = True
    """Whether it supports dict options of a choice; tuners only."""
    space_check: str = ""
    """`module:function` that raises ValueError for a bad space; empty for the usual language in
    tuners, for anything in advisors."""
    any_space_with_outcomes: bool = False
    """Whether it supports every type, and nesting, with several objectives or limits on outcomes,
    whatever it supports otherwise; tuners only."""
    space_argument: str = ""
    """The argument that, where given, replaces the search space; empty if none does."""
    keeps_first_space: bool = False
    """Whether it goes on with the space that it began with, whatever it is given later."""
    extra: str = ""
    """The extra of the distribution that its dependencies come with; empty if none."""
    source: Literal["nni", "user"] = "user"


def _rules(name: str, **rules: ArgumentRule) -> TableValidator:
    return TableValidator(name, rules)


_SMALLEST: Final = 1e-12
"""Stands for a bound that is itself excluded: > 0."""

_MAXIMIZE: Final = MappingProxyType({"optimize_mode": "maximize"})
"""What a configuration means that does not say; constructors themselves default otherwise."""

BUILT_IN: Final = (
    AlgorithmEntry(
        name="auto",
        kind="tuner",
        class_path="nni.hpo.tuners.auto:AutoTuner",
        documented_path="nni.hpo.tuners.auto.AutoTuner",
        validator=_rules(
            "auto",
            optimize_mode=OPTIMIZE_MODE,
            ask_time_limit=number("ask_time_limit", float, 0, math.inf),
            seed=SEED,
        ),
        defaults=_MAXIMIZE,
        extra="hpo",
        source="nni",
    ),
    AlgorithmEntry(
        name="TPE",
        kind="tuner",
        class_path="nni.hpo.tuners.tpe:TPETuner",
        documented_path="nni.algorithms.hpo.hyperopt_tuner.HyperoptTuner",
        validator=_rules(
            "TPE",
            optimize_mode=OPTIMIZE_MODE,
            parallel_optimize=boolean("parallel_optimize"),
            constant_liar_type=one_of("constant_liar_type", "min", "max", "mean"),
            seed=SEED,
        ),
        defaults=_MAXIMIZE,
        extra="hpo",
        source="nni",
    ),
    AlgorithmEntry(
        name="Random",
        kind="tuner",
        class_path="nni.hpo.tuners.random_search:RandomTuner",
        documented_path="nni.algorithms.hpo.hyperopt_tuner.HyperoptTuner",
        validator=_rules("Random", optimize_mode=OPTIMIZE_MODE, seed=SEED),
        defaults=_MAXIMIZE,
        source="nni",
    ),
    AlgorithmEntry(
        name="GridSearch",
        kind="tuner",
        class_path="nni.hpo.tuners.grid_search:GridSearchTuner",
        documented_path="nni.algorithms.hpo.gridsearch_tuner.GridSearchTuner",
        validator=_rules("GridSearch", optimize_mode=OPTIMIZE_MODE),
        types=("choice", "randint", "quniform"),
        source="nni",
    ),
    AlgorithmEntry(
        name="BatchTuner",
        kind="tuner",
        class_path="nni.hpo.tuners.batch:BatchTuner",
        documented_path="nni.algorithms.hpo.batch_tuner.BatchTuner",
        validator=_rules("BatchTuner", optimize_mode=OPTIMIZE_MODE),
        types=("choice",),
        nested=False,
        space_check="nni.hpo.space.feasibility:combine_params",
        source="nni",
    ),
    AlgorithmEntry(
        name="Anneal",
        kind="tuner",
        class_path="nni.hpo.tuners.anneal:AnnealTuner",
        documented_path="nni.algorithms.hpo.hyperopt_tuner.HyperoptTuner",
        validator=_rules("Anneal", optimize_mode=OPTIMIZE_MODE, seed=SEED),
        defaults=_MAXIMIZE,
        source="nni",
    ),
    AlgorithmEntry(
        name="Evolution",
        kind="tuner",
        class_path="nni.hpo.tuners.evolution:EvolutionTuner",
        documented_path="nni.algorithms.hpo.evolution_tuner.EvolutionTuner",
        validator=_rules(
            "Evolution",
            optimize_mode=OPTIMIZE_MODE,
            population_size=number("population_size", int, 1, 99999),
            seed=SEED,
        ),
        defaults=_MAXIMIZE,
        source="nni",
    ),
    AlgorithmEntry(
        name="SMAC",
        kind="tuner",
        class_path="nni.hpo.tuners.smac:SMACTuner",
        documented_path="nni.algorithms.hpo.smac_tuner.SMACTuner",
        validator=_rules(
            "SMAC", optimize_mode=OPTIMIZE_MODE, config_dedup=boolean("config_dedup"), seed=SEED
        ),
        keeps_first_space=True,
        defaults=_MAXIMIZE,
        types=("choice", "randint", "uniform", "loguniform", "quniform"),
        nested=False,
        extra="hpo",
        source="nni",
    ),
    AlgorithmEntry(
        name="MetisTuner",
        kind="tuner",
        class_path="nni.hpo.tuners.metis:MetisTuner",
        documented_path="nni.algorithms.hpo.metis_tuner.MetisTuner",
        validator=_rules(
            "MetisTuner",
            optimize_mode=OPTIMIZE_MODE,
            no_resampling=boolean("no_resampling"),
            no_candidates=boolean("no_candidates"),
            selection_num_starting_points=whole("selection_num_starting_points", 1),
            cold_start_num=whole("cold_start_num", 1),
            exploration_probability=number("exploration_probability", float, 0, 1),
            ask_time_limit=number("ask_time_limit", float, 0, math.inf),
            seed=SEED,
        ),
        defaults=_MAXIMIZE,
        types=METIS_TYPES,
        nested=False,
        space_check="nni.hpo.encoding.numeric_space:check_metis_space",
        extra="hpo",
        source="nni",
    ),
    AlgorithmEntry(
        name="GPTuner",
        kind="tuner",
        class_path="nni.hpo.tuners.gp:GPTuner",
        documented_path="nni.algorithms.hpo.gp_tuner.GPTuner",
        validator=_rules(
            "GPTuner",
            optimize_mode=OPTIMIZE_MODE,
            utility=one_of("utility", "ei", "ucb", "poi"),
            kappa=number("kappa", float, 0, math.inf),
            xi=number("xi", float, 0, math.inf),
            nu=number("nu", float, _SMALLEST, math.inf),
            alpha=number("alpha", float, 0, math.inf),
            cold_start_num=whole("cold_start_num", 1),
            selection_num_warm_up=whole("selection_num_warm_up", 1),
            selection_num_starting_points=whole("selection_num_starting_points", 1),
            ask_time_limit=number("ask_time_limit", float, 0, math.inf),
            seed=SEED,
        ),
        defaults=_MAXIMIZE,
        types=NUMERIC_TYPES,
        nested=False,
        space_check="nni.hpo.encoding.numeric_space:check_gp_space",
        any_space_with_outcomes=True,
        extra="hpo",
        source="nni",
    ),
    AlgorithmEntry(
        name="DNGOTuner",
        kind="tuner",
        class_path="nni.hpo.tuners.dngo:DNGOTuner",
        documented_path="nni.algorithms.hpo.dngo_tuner.DNGOTuner",
        validator=_rules(
            "DNGOTuner",
            optimize_mode=OPTIMIZE_MODE,
            sample_size=whole("sample_size", 1),
            trials_per_update=whole("trials_per_update", 1),
            num_epochs_per_training=whole("num_epochs_per_training", 1),
            seed=SEED,
        ),
        defaults=_MAXIMIZE,
        types=NUMERIC_TYPES,
        nested=False,
        space_check="nni.hpo.encoding.numeric_space:check_dngo_space",
        extra="hpo",
        source="nni",
    ),
    AlgorithmEntry(
        name="PBTTuner",
        kind="tuner",
        class_path="nni.hpo.tuners.pbt:PBTTuner",
        documented_path="nni.algorithms.hpo.pbt_tuner.PBTTuner",
        validator=_rules(
            "PBTTuner",
            optimize_mode=OPTIMIZE_MODE,
            all_checkpoint_dir=path("all_checkpoint_dir"),
            population_size=number("population_size", int, 1, 99999),
            factors=positive_numbers("factors"),
            fraction=number("fraction", float, 0, 1),
            resample_probability=number("resample_probability", float, 0, 1),
            seed=SEED,
        ),
        defaults=_MAXIMIZE,
        nested=False,
        space_check="nni.hpo.tuners.pbt:check_space",
        source="nni",
    ),
    AlgorithmEntry(
        name="NetworkMorphism",
        kind="tuner",
        class_path="nni.hpo.tuners.network_morphism.tuner:NetworkMorphismTuner",
        documented_path="nni.algorithms.hpo.networkmorphism_tuner.NetworkMorphismTuner",
        validator=_rules(
            "NetworkMorphism",
            optimize_mode=OPTIMIZE_MODE,
            task=one_of("task", "cv"),
            input_width=number("input_width", int, 1, 2**31 - 1),
            input_channel=number("input_channel", int, 1, 2**31 - 1),
            n_output_node=number("n_output_node", int, 1, 2**31 - 1),
            algorithm_name=one_of("algorithm_name", "Bayesian"),
            path=path("path"),
            verbose=boolean("verbose"),
            beta=number("beta", float, 0, math.inf),
            t_min=number("t_min", float, _SMALLEST, 1 - _SMALLEST),
            max_model_size=number("max_model_size", int, 1, 2**53),
            default_model_len=number("default_model_len", int, 1, 99),
            default_model_width=number("default_model_width", int, 1, 2**31 - 1),
            seed=SEED,
        ),
        defaults=_MAXIMIZE,
        space_check="nni.hpo.registry.registrations:accept_any_space",
        extra="hpo",
        source="nni",
    ),
    AlgorithmEntry(
        name="CmaEs",
        kind="tuner",
        class_path="nni.hpo.tuners.cma_es:CmaEs",
        documented_path="nni.hpo.tuners.cma_es.CmaEs",
        validator=_rules(
            "CmaEs",
            optimize_mode=OPTIMIZE_MODE,
            population_size=nullable(number("population_size", int, 2, 99999)),
            restart_factor=number("restart_factor", int, 1, 99),
            seed=SEED,
        ),
        defaults=_MAXIMIZE,
        nested=False,
        extra="hpo",
        source="nni",
    ),
    AlgorithmEntry(
        name="NSGA2",
        kind="tuner",
        class_path="nni.hpo.tuners.nsga2:NSGA2",
        documented_path="nni.hpo.tuners.nsga2.NSGA2",
        validator=_rules(
            "NSGA2",
            optimize_mode=OPTIMIZE_MODE,
            population_size=number("population_size", int, 2, 99999),
            seed=SEED,
        ),
        defaults=_MAXIMIZE,
        extra="hpo",
        source="nni",
    ),
    AlgorithmEntry(
        name="Hyperband",
        kind="advisor",
        class_path="nni.hpo.advisors.hyperband:Hyperband",
        documented_path="nni.algorithms.hpo.hyperband_advisor.Hyperband",
        validator=_rules(
            "Hyperband",
            R=number("R", int, 1, 2**31 - 1),
            eta=number("eta", int, 2, 2**31 - 1),
            optimize_mode=OPTIMIZE_MODE,
            exec_mode=one_of("exec_mode", "serial", "parallelism"),
            seed=SEED,
        ),
        defaults=_MAXIMIZE,
        nested=False,
        space_check="nni.hpo.advisors.hyperband:check_space",
        source="nni",
    ),
    AlgorithmEntry(
        name="BOHB",
        kind="advisor",
        class_path="nni.hpo.advisors.bohb:BOHB",
        documented_path="nni.algorithms.hpo.bohb_advisor.BOHB",
        validator="nni.hpo.advisors.bohb_arguments:BOHBArguments",
        defaults=_MAXIMIZE,
        nested=False,
        space_check="nni.hpo.advisors.bohb_arguments:check_space",
        space_argument="config_space",
        extra="hpo",
        source="nni",
    ),
    AlgorithmEntry(
        name="ASHA",
        kind="advisor",
        class_path="nni.hpo.advisors.asha:ASHA",
        documented_path="nni.hpo.advisors.asha.ASHA",
        validator="nni.hpo.advisors.asha_arguments:ASHAArguments",
        defaults=_MAXIMIZE,
        space_check="nni.hpo.advisors.asha:check_space",
        source="nni",
    ),
    AlgorithmEntry(
        name="MOASHA",
        kind="advisor",
        class_path="nni.hpo.advisors.moasha:MOASHA",
        documented_path="nni.hpo.advisors.moasha.MOASHA",
        validator="nni.hpo.advisors.asha_arguments:MOASHAArguments",
        space_check="nni.hpo.advisors.asha:check_space",
        source="nni",
    ),
    AlgorithmEntry(
        name="Medianstop",
        kind="assessor",
        class_path="nni.hpo.assessors.median_stop:MedianstopAssessor",
        documented_path="nni.algorithms.hpo.medianstop_assessor.MedianstopAssessor",
        validator=_rules(
            "Medianstop",
            optimize_mode=OPTIMIZE_MODE,
            start_step=number("start_step", int, 0, 9999),
        ),
        defaults=_MAXIMIZE,
        source="nni",
    ),
    AlgorithmEntry(
        name="Curvefitting",
        kind="assessor",
        class_path="nni.hpo.assessors.curve_fitting:CurvefittingAssessor",
        documented_path="nni.algorithms.hpo.curvefitting_assessor.CurvefittingAssessor",
        validator=_rules(
            "Curvefitting",
            epoch_num=required(number("epoch_num", int, 1, 9999)),
            start_step=number("start_step", int, 0, 9999),
            threshold=number("threshold", float, _SMALLEST, 9999),
            gap=number("gap", int, 1, 9999),
            optimize_mode=one_of("optimize_mode", "maximize"),
            seed=SEED,
        ),
        defaults=_MAXIMIZE,
        extra="hpo",
        source="nni",
    ),
)
