"""What is known of the named algorithms, and the table of the built-in ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from nni.hpo.json_value import JsonValue
from nni.hpo.space import ALL_TYPES
from nni.hpo.validation import (
    OPTIMIZE_MODE,
    SEED,
    ArgumentRule,
    ClassArgsValidator,
    TableValidator,
    boolean,
    number,
    one_of,
)

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
    """`module:function` that raises ValueError for a bad space; empty for the usual language."""
    extra: str = ""
    """The extra of the distribution that its dependencies come with; empty if none."""
    source: Literal["nni", "user"] = "user"


def _rules(name: str, **rules: ArgumentRule) -> TableValidator:
    return TableValidator(name, rules)


_MAXIMIZE: Final = MappingProxyType({"optimize_mode": "maximize"})
"""What a configuration means that does not say; constructors themselves default otherwise."""

BUILT_IN: Final = (
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
        space_check="nni.hpo.tuners.batch:combine_params",
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
)
