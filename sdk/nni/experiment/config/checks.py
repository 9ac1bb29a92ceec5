"""Validation rules that span several fields of a configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from nni.experiment.config.algorithm import AlgorithmConfig
from nni.experiment.config.experiment_fields import ExperimentFields
from nni.experiment.config.listed_tuners import problems_of_tuners
from nni.experiment.config.shared_storage import SharedStorageConfig
from nni.experiment.config.texts import check_texts
from nni.experiment.config.training_service_base import differing_limits
from nni.experiment.errors import ConfigError, Problem
from nni.hpo.registry import factory
from nni_wire.limits import SEARCH_SPACE_LIMIT_BYTES

_SECTIONS: Final[tuple[factory.Kind, ...]] = (
    "tuner",
    "assessor",
    "advisor",
)
_PACKAGES_BY_EXTRA: Final = {"hpo": ("numpy",)}
"""Packages that the algorithms of an extra import."""


def check(config: ExperimentFields) -> None:
    """Check a configuration without services; raise ConfigError with all broken rules.

    Raises:
        ConfigError: names every broken rule.
    """
    problems = [
        *_required(config),
        *_search_space_source(config),
        *_algorithms(config),
        *_platforms(config),
        *_shared_storage(config),
        *_code_directory(config),
        *_default_paths(config),
    ]
    if not problems:
        problems = [*_algorithm_arguments(config), *_search(config)]
    if problems:
        raise ConfigError(problems)


def check_search_space(config: ExperimentFields) -> None:
    """Raise ConfigError unless the search space is valid and the algorithms accept it.

    Raises:
        ConfigError: one of them does not.
    """
    problems = [*_search_space_text(config), *_algorithm_arguments(config)]
    if problems:
        raise ConfigError(problems)


def _required(config: ExperimentFields) -> Iterator[Problem]:
    if not (config.trial_command or "").strip():
        yield Problem("trialCommand", "must be given", None, "for example: python3 trial.py")
    if config.trial_concurrency is None:
        yield Problem("trialConcurrency", "must be given", None, "trials live at once, >= 1")
    if config.training_service is None or config.training_service == []:
        yield Problem("trainingService", "must be given", None, "for example: {platform: local}")


def _search_space_source(config: ExperimentFields) -> Iterator[Problem]:
    sources = [
        name
        for name, given in (
            ("searchSpace", config.search_space is not None),
            ("searchSpaceFile", config.search_space_file is not None),
            ("useAnnotation", config.use_annotation),
        )
        if given
    ]
    if not sources:
        rule = "must be given, or searchSpaceFile"
        yield Problem("searchSpace", rule, None, "an empty space is written {}")
    elif len(sources) > 1:
        yield Problem(" and ".join(sources), "must not be given together; keep one")
    else:
        yield from _search_space_text(config)


def _search_space_text(config: ExperimentFields) -> Iterator[Problem]:
    try:
        space = config.read_search_space()
        text = json.dumps(space)
        check_texts(space, "searchSpace")  # it may have been changed in its place
    except ConfigError as error:
        file = f"searchSpaceFile {error.source}:" if error.source else ""
        yield from (
            replace(problem, field=f"{file} {problem.field}".strip()) for problem in error.problems
        )
        return
    except (TypeError, ValueError) as error:
        yield Problem("searchSpace", f"must be a JSON value: {error}")
        return
    if len(text) > SEARCH_SPACE_LIMIT_BYTES:
        rule = f"must be at most {SEARCH_SPACE_LIMIT_BYTES:,} bytes of JSON"
        remedy = "let trials read long values from a file of the code"
        yield Problem("searchSpace", rule, len(text), remedy)


def _algorithms(config: ExperimentFields) -> Iterator[Problem]:
    for section in _SECTIONS:
        algorithm = config.given(section)
        if algorithm is not None:
            yield from algorithm.problems(section)
    yield from problems_of_tuners(
        config.tuners,
        config.tuner_policy,
        [name for name in ("tuner", "advisor") if getattr(config, name).is_given()],
        objectives=bool(config.objectives),
    )
    tuner, assessor = config.given("tuner"), config.given("assessor")
    if config.given("advisor") is not None:
        others = [name for name, given in (("tuner", tuner), ("assessor", assessor)) if given]
        if others:
            rule = f"must not be given together with {' and '.join(others)}"
            yield Problem("advisor", rule, None, "an advisor is tuner and assessor in one")
    elif tuner is not None and assessor is not None and not _takes_assessor(tuner):
        yield Problem("assessor", f"must not be given together with {tuner.name}")


def _takes_assessor(tuner: AlgorithmConfig) -> bool:
    return not tuner.name or factory.takes_assessor(tuner.name)


def _platforms(config: ExperimentFields) -> Iterator[Problem]:
    services = config.training_services()
    several = isinstance(config.training_service, list)
    for index, service in enumerate(services):
        field = f"trainingService[{index}]" if several else "trainingService"
        yield from service.problems(field, config.trial_gpu_number)
    yield from differing_limits(services)
    if sum(service.platform == "local" for service in services) > 1:
        yield Problem("trainingService", "must have at most one local platform")


_AS_VOLUME: Final = "mount it as one of the section's volumes"
_WITHOUT_SHARED_STORAGE: Final = {
    "kubernetes": _AS_VOLUME,
    "kubeflow": _AS_VOLUME,
    "frameworkcontroller": _AS_VOLUME,
    "adl": _AS_VOLUME,
    "aml": "write to the workspace's storage with Azure's packages",
    "dlc": "write to the NAS, which all containers mount",
    "openpai": "name a storage of OpenPAI as storageConfigName",
    "ray": "write to a file system that all nodes have",
    "pool": "write to a file system that all machines of the pool have",
}
"""Platforms whose agents cannot mount a storage for one experiment, and the remedy."""


def _shared_storage(config: ExperimentFields) -> Iterator[Problem]:
    storage: SharedStorageConfig | None = config.shared_storage
    if storage is None:
        return
    services = config.training_services()
    if all(service.platform == "local" for service in services):
        yield Problem("sharedStorage", "is not for the local platform; leave it out")
    for service in services:
        if service.platform in _WITHOUT_SHARED_STORAGE:
            rule = f"is not for the platform {service.platform}"
            remedy = _WITHOUT_SHARED_STORAGE[service.platform]
            yield Problem("sharedStorage", rule, None, remedy)
        elif getattr(service, "reuse_mode", True) is False:
            rule = "needs agents that run trial after trial"
            yield Problem("sharedStorage", rule, None, "set reuseMode: true")
    yield from storage.problems(config.trial_code_directory)


def _code_directory(config: ExperimentFields) -> Iterator[Problem]:
    directory = config.trial_code_directory
    if not directory.exists():
        yield Problem("trialCodeDirectory", "must exist", str(directory))
    elif not directory.is_dir():
        yield Problem("trialCodeDirectory", "must be a folder", str(directory))
    elif not os.access(directory, os.R_OK | os.X_OK):
        remedy = "give yourself read and search permission for it"
        yield Problem("trialCodeDirectory", "must be readable", str(directory), remedy)


def _default_paths(config: ExperimentFields) -> Iterator[Problem]:
    """Yield problems of paths that may be defaults: the current folder can have any name."""
    paths: dict[str, Path | None] = {
        "trialCodeDirectory": config.trial_code_directory,
        "experimentWorkingDirectory": config.experiment_working_directory,
    }
    for section in _SECTIONS:
        algorithm = config.given(section)
        if algorithm is not None and algorithm.class_name:
            paths[f"{section}.codeDirectory"] = algorithm.code_directory
    try:
        check_texts(paths)
    except ConfigError as error:
        yield from error.problems


def _algorithm_arguments(config: ExperimentFields) -> Iterator[Problem]:
    """Yield problems of algorithms given by name: arguments, search space, missing packages.

    Before annotated code is converted there is no space to check.
    """
    space = config.read_search_space()
    for section in _SECTIONS:
        algorithm = config.given(section)
        if algorithm is None or not algorithm.name:
            continue  # a class of the user's own: its space is free-form
        arguments = dict(algorithm.class_args or {})
        if section == "advisor" and config.objectives:  # which it is built for
            modes = {item.metric: item.mode for item in config.objectives}
            arguments["optimize_mode"] = modes if len(modes) > 1 else config.objectives[0].mode
        try:
            factory.validate(
                section,
                algorithm.name,
                arguments,
                space,
                several_outcomes=len(config.objectives) > 1 or bool(config.constraints),
            )
        except ValueError as error:
            yield Problem(f"{section}:", str(error))
        else:
            yield from _missing_extra(section, algorithm.name)


def _search(config: ExperimentFields) -> Iterator[Problem]:
    if config.search is None:
        return
    if config.given("advisor") is not None:
        yield Problem("search", "is for a tuner", None, "leave it out; an advisor decides itself")
    if len(config.objectives) > 1 and config.search.stop.to_dict():
        yield Problem("search.stop", "needs a single objective", None, "leave it out")
    yield from config.search.problems(config.read_search_space())


def _missing_extra(section: factory.Kind, name: str) -> Iterator[Problem]:
    extra = factory.find(section, name).extra
    missing = [
        package for package in _PACKAGES_BY_EXTRA.get(extra, ()) if find_spec(package) is None
    ]
    if missing:
        remedy = f"pip install 'nni[{extra}]'"
        rule = f"needs a package that is missing: {', '.join(missing)}"
        yield Problem(f"{section} {name}", rule, None, remedy)
