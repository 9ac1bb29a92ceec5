"""Construction of an experiment's algorithms, with seeds and with the plan of its configuration.

A plan is a dict of `objectives` (dicts with `metric` and `mode`), `constraints` (with `metric` and
`max`), `duplicates`, `enqueue`, `known` (samples) and `stop` (`no_improvement`, `target`,
`regret_bound`), each of which may be missing.
"""

from __future__ import annotations

import os
import platform
import random
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

from nni.hpo.base import Assessor, AssessResult, Resumable, Tuner
from nni.hpo.registry import factory
from nni.hpo.registry.built_in import BUILT_IN
from nni.version import __version__

if TYPE_CHECKING:  # most experiments have no plan, and their hosts start without these
    from nni.hpo.json_value import JsonValue
    from nni.hpo.objectives import Objectives
    from nni.hpo.search.managed_tuner import SearchPlan

_MODE: Final = "optimize_mode"


def planned_tuner(config: dict[str, Any], plan: Mapping[str, Any] | None, seed: int) -> Tuner:
    """Construct a tuner; a plan sets its mode by the objectives and wraps it in a `ManagedTuner`.

    Args:
        config: configuration of the tuner, see `build`.
        plan: None for a tuner alone.
        seed: seed of the tuner, and of samples in place of duplicates.

    Raises:
        Exception: any exception of import or constructor.
    """
    if not plan:
        tuner: Tuner = build("tuner", config, seed)
        return tuner
    from nni.hpo.search.managed_tuner import managed

    objectives = _objectives(config, plan)
    if plan.get("objectives"):  # these override the mode; a scalarized loss is minimised
        mode = "minimize" if objectives.several else objectives.items[0].mode
        config = _with_mode(config, mode, always=True)
    inner: Tuner = build("tuner", config, seed)
    return managed(inner, _plan(plan, objectives), seed)


def planned_assessor(config: dict[str, Any], plan: Mapping[str, Any] | None, seed: int) -> Assessor:
    """Construct an assessor; with objectives, it gets the first one's mode and metric alone.

    Args:
        config: configuration of the assessor, see `build`.
        plan: None for whole reports.
        seed: seed of the assessor.

    Raises:
        Exception: any exception of import or constructor.
    """
    objectives = (plan or {}).get("objectives")
    if not objectives:
        assessor: Assessor = build("assessor", config, seed)
        return assessor
    first = objectives[0]
    inner = build("assessor", _with_mode(config, first["mode"], always=False), seed)
    kind = ResumableMetricAssessor if isinstance(inner, Resumable) else MetricAssessor
    return kind(inner, first["metric"])


def planned_advisor(config: dict[str, Any], plan: Mapping[str, Any] | None, seed: int) -> Any:  # noqa: ANN401 - an advisor
    """Construct an advisor, its mode set by a plan's objectives; the rest of the plan is ignored.

    Args:
        config: configuration of the advisor, see `build`.
        plan: None for whole reports.
        seed: seed of the advisor.

    Raises:
        Exception: any exception of import or constructor, also for too many objectives.
    """
    objectives = (plan or {}).get("objectives")
    if objectives:
        modes = {item["metric"]: item["mode"] for item in objectives}
        mode = modes if len(modes) > 1 else objectives[0]["mode"]
        config = _with_mode(config, mode, always=True)
    return build("advisor", config, seed)


def metric_of(config: dict[str, Any], plan: Mapping[str, Any] | None) -> str | None:
    """Return the metric to extract from reports for a named advisor; None for whole reports."""
    objectives = (plan or {}).get("objectives") or []
    named = bool(config.get("name"))
    return str(objectives[0]["metric"]) if named and len(objectives) == 1 else None


def learned_metrics(config: dict[str, Any], plan: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the metrics that an algorithm learns from; empty for a custom one without objectives.

    Empty for a custom algorithm, which gets the reports as they are.
    """
    plan = plan or {}
    built_in = config.get("name") in {entry.name for entry in BUILT_IN}
    named = tuple(str(item["metric"]) for item in plan.get("objectives") or ())
    if named or not built_in:
        return named
    mode = (config.get("class_args") or {}).get(_MODE)
    return tuple(map(str, mode)) if isinstance(mode, Mapping) else ("default",)


class MetricAssessor(Assessor):
    """Assessor that passes one metric of reports to another assessor.

    Args:
        assessor: the wrapped assessor.
        metric: name of the metric; a plain number is `default`.
    """

    def __init__(self, assessor: Assessor, metric: str) -> None:
        self._assessor = assessor
        self._metric = metric

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        """Return the wrapped assessor's decision on the one metric of the trial's reports."""
        from nni.hpo.objectives import part_of

        history = [part_of(value, self._metric) for value in trial_history]
        return self._assessor.assess_trial(trial_job_id, history)

    def trial_end(self, trial_job_id: str, success: bool) -> None:  # noqa: FBT001 - documented signature
        """Pass the end of a trial to the wrapped assessor."""
        self._assessor.trial_end(trial_job_id, success)


class ResumableMetricAssessor(MetricAssessor):
    """`MetricAssessor` whose wrapped assessor can be saved and restored."""

    def state(self) -> dict[str, JsonValue]:
        """Return the state of the wrapped assessor."""
        assert isinstance(self._assessor, Resumable)
        return self._assessor.state()

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore the state of the wrapped assessor."""
        assert isinstance(self._assessor, Resumable)
        self._assessor.load_state(state)


def _with_mode(config: dict[str, Any], mode: Any, *, always: bool) -> dict[str, Any]:  # noqa: ANN401 - a mode, or a dict of modes
    """Return a configuration with a mode; one that is given is replaced only with ``always``.

    Args:
        config: configuration of an algorithm. A custom class gets a mode only if it has one.
        mode: the mode, or a dict of metric to mode.
        always: whether to override a mode of the user.
    """
    arguments = dict(config.get("class_args") or {})
    if (config.get("name") and (always or _MODE not in arguments)) or (
        always and _MODE in arguments
    ):
        arguments[_MODE] = mode
    return {**config, "class_args": arguments}


def _objectives(config: dict[str, Any], plan: Mapping[str, Any]) -> Objectives:
    from nni.hpo.objectives import objectives_of

    limits = plan.get("constraints") or ()
    named = {item["metric"]: item["mode"] for item in plan.get("objectives") or ()}
    if named:
        return objectives_of(named, limits)
    defaults: Mapping[str, Any] = {}
    if config.get("name"):
        defaults = factory.find("tuner", config["name"]).defaults
    arguments = config.get("class_args") or {}
    return objectives_of(arguments.get(_MODE) or defaults.get(_MODE) or "maximize", limits)


def _plan(plan: Mapping[str, Any], objectives: Objectives) -> SearchPlan:
    from nni.hpo.search.managed_tuner import SearchPlan
    from nni.hpo.search.stopping_rules import (
        NoImprovement,
        RegretBound,
        StoppingRule,
        TargetReached,
    )

    stop = plan.get("stop") or {}
    rules: list[StoppingRule] = []
    if "no_improvement" in stop:
        rules.append(NoImprovement(stop["no_improvement"]))
    if "target" in stop:
        rules.append(TargetReached(stop["target"], objectives.items[0].mode))
    if "regret_bound" in stop:
        rules.append(RegretBound(stop["regret_bound"]))
    return SearchPlan(
        objectives,
        plan.get("duplicates") or "replicate",
        first=tuple(plan.get("enqueue") or ()),
        known=tuple(plan.get("known") or ()),
        earlier=tuple(tuple(samples) for samples in plan.get("earlier") or ()),
        rules=tuple(rules),
    )


_NUMPY_SEEDS: Final = 2**32
"""`numpy.random.seed` takes less than this."""


def build(
    kind: Literal["tuner", "assessor", "advisor"], config: dict[str, Any], seed: int | None
) -> Any:  # noqa: ANN401 - a tuner, assessor or advisor
    """Construct an algorithm by its name, or a class of the user's own.

    Args:
        kind: kind of the algorithm.
        config: `name`, or `class_name` with an optional `code_directory`; `class_args`.
        seed: seed for constructors of named algorithms that have this argument.

    Raises:
        Exception: any exception of import or constructor.
    """
    if config.get("name"):
        return factory.create(kind, config["name"], config.get("class_args"), seed)
    return factory.create_custom(
        kind,
        config["class_name"],
        config.get("class_args"),
        config.get("code_directory") or None,
    )


def display_name(config: dict[str, Any]) -> str:
    """Return the name or class of an algorithm, for its suggestions' provenance."""
    return str(config.get("name") or config["class_name"])


def seed_global_generators(seed: int, *, custom: bool) -> None:
    """Seed Python's global generator, and numpy's, if installed, for custom classes.

    Args:
        seed: any int.
        custom: whether custom classes will run; if so, numpy's global generator is seeded too.
            Built-in algorithms have generators of their own, so numpy is not imported for them.
    """
    random.seed(seed)
    if custom and find_spec("numpy") is not None:
        import_module("numpy.random").seed(seed % _NUMPY_SEEDS)


def machine_provenance() -> dict[str, str]:
    """Return versions of Python, nni and a loaded numpy, and machine, system, CPUs, as texts."""
    provenance = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": str(os.cpu_count()),
        "nni": __version__,
    }
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        provenance["numpy"] = str(numpy.__version__)
    return provenance
