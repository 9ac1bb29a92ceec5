"""Conversion of experiment files of schema v1 (NNI 1.x) to schema v2."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath
from typing import Any, Final

from nni.experiment.config.experiment_fields import ExperimentFields
from nni.experiment.config.schema_v1_platforms import (
    PLATFORM_SECTIONS,
    PLATFORMS_V1,
    platform_fields,
)
from nni.experiment.config.section_reader import ConversionFindings, SectionReader, without_nones
from nni.experiment.errors import ConfigError

UNLIMITED_DURATION: Final = "999d"
"""Default of schema v1 for durations: no limit."""
UNLIMITED_NUMBER: Final = 99999
"""Default of schema v1 for the number of trials: no limit."""

_DROPPED: Final = ("authorName", "versionCheck", "multiThread", "multiPhase", "logCollection")
_UNCHANGED: Final = (
    "experimentName",
    "trialConcurrency",
    "nniManagerIp",
    "debug",
    "logLevel",
    "sharedStorage",
)
"""Fields that schema v2 has, too, with the same rules."""

_NAMES_IN_V1: Final = {
    "experimentWorkingDirectory": "logDir",
    "maxExperimentDuration": "maxExecDuration",
    "maxTrialNumber": "maxTrialNum",
    "searchSpaceFile": "searchSpacePath",
    "trialCodeDirectory": "trial.codeDir",
    "trialCommand": "trial.command",
    "trialGpuNumber": "trial.gpuNum",
    "tunerGpuIndices": "tuner.gpuIndices",
}


@dataclass(frozen=True, slots=True)
class ConvertedDocument:
    """Document of schema v2 made from one of schema v1, and the fields that were dropped."""

    document: dict[str, Any]
    """Fields by camelCase name."""
    dropped: tuple[str, ...]
    """Fields of the old document that have no meaning any more, with the reason if there is one."""

    def warning(self, source: str) -> str:
        """Return the one warning about a file: its schema, and the fields without meaning.

        Args:
            source: path of the file.
        """
        dropped = f"Without meaning here: {', '.join(self.dropped)}. " if self.dropped else ""
        unnamed = "" if "experimentName" in self.document else "It has no experimentName. "
        return (
            f"{source} has the schema of NNI 1.x (v1) and is read as schema v2. {dropped}{unnamed}"
            f"To write the file anew: nnictl config convert {source}"
        )


def is_v1(document: Mapping[object, object]) -> bool:
    """Return True if a document has schema v1, and not a mixture of v1 and v2."""
    mixed = "trainingService" in document or "training_service" in document
    return "trainingServicePlatform" in document and not mixed


def convert_v1(
    document: Mapping[object, object], directory: PurePath | None = None
) -> ConvertedDocument:
    """Convert a document of schema v1 to v2; raise ConfigError with all its problems.

    Args:
        document: content of the file; it is not changed.
        directory: folder that relative paths are joined to; `None`: they stay as written.

    Raises:
        ConfigError: names every field that is unknown, missing, wrong or in conflict with another.
    """
    findings = ConversionFindings(directory)
    file = SectionReader(document, "", findings)
    for name in _DROPPED:
        file.drop(name)
    fields = {name: copy.deepcopy(file.raw(name)) for name in _UNCHANGED}
    fields |= _limits(file)
    fields |= _search_space(file)
    fields |= _algorithms(file)
    fields |= _trials(file)
    fields["experimentWorkingDirectory"] = file.path("logDir")
    file.finish(_remedies(document))
    if findings.problems:
        raise ConfigError(findings.problems)
    return ConvertedDocument(without_nones(fields), tuple(findings.dropped))


def _limits(file: SectionReader) -> dict[str, Any]:
    count = file.integer("maxTrialNum", least=1)
    durations = {
        "maxExperimentDuration": file.duration("maxExecDuration"),
        "maxTrialDuration": file.duration("maxTrialDuration"),
    }
    return {
        "maxTrialNumber": None if count == UNLIMITED_NUMBER else count,
        **{name: None if text == UNLIMITED_DURATION else text for name, text in durations.items()},
    }


def _search_space(file: SectionReader) -> dict[str, Any]:
    annotated = file.flag("useAnnotation")
    if annotated and file.given("searchSpacePath"):
        rule = "must not be given with useAnnotation: true"
        file.problem("searchSpacePath", rule, file.raw("searchSpacePath"), "keep one")
    if not annotated and not file.given("searchSpacePath"):
        file.problem("searchSpacePath", "must be given, or useAnnotation: true")
    return {"useAnnotation": annotated, "searchSpaceFile": file.path("searchSpacePath")}


def _algorithms(file: SectionReader) -> dict[str, Any]:
    if file.given("advisor"):
        for name in ("tuner", "assessor"):
            file.drop(name, "the advisor is both")
        advisor = file.section("advisor")
        gpus = _gpus_of(advisor)
        return {"tunerGpuIndices": gpus, "advisor": _algorithm(advisor, "builtinAdvisorName")}
    file.require("tuner", "or advisor")
    tuner = file.section("tuner")
    fields: dict[str, Any] = {
        "tunerGpuIndices": _gpus_of(tuner),
        "includeIntermediateResults": tuner.flag("includeIntermediateResults"),
    }
    if file.given("tuner"):
        fields["tuner"] = _algorithm(tuner, "builtinTunerName")
    if file.given("assessor"):
        fields["assessor"] = _algorithm(file.section("assessor"), "builtinAssessorName")
    file.raw("advisor")
    return fields


def _gpus_of(section: SectionReader) -> list[int] | None:
    return section.gpus("gpuIndices") or None


def _algorithm(section: SectionReader, name_field: str) -> dict[str, Any]:
    """Return the section of an algorithm: built-in or registered by name, or a class in a file."""
    folder_fields = [name for name in ("codeDir", "codeDirectory") if section.given(name)]
    custom = [
        *folder_fields,
        *(name for name in ("classFileName", "className") if section.given(name)),
    ]
    name = section.text(name_field)
    if section.given(name_field) and custom:
        rule = f"must not be given with {', '.join(custom)}"
        section.problem(name_field, rule, name, "keep the name or the class")
    elif custom:
        _require_class(section, folder_fields)
    else:
        section.require(name_field, "or codeDir, classFileName and className")
    folders = [section.path("codeDir"), section.path("codeDirectory")]
    fields = {
        "name": name,
        "className": _class_name(section),
        "codeDirectory": next((folder for folder in folders if folder is not None), None),
        "classArgs": _class_args(section),
    }
    section.finish()
    return without_nones(fields)


def _require_class(section: SectionReader, folder_fields: list[str]) -> None:
    section.require("className")
    section.require("classFileName", "for example: my_tuner.py")
    if len(folder_fields) != 1:
        rule = "must not be given again as codeDirectory" if folder_fields else "must be given"
        section.problem("codeDir", rule, None, "the folder of classFileName")


def _class_name(section: SectionReader) -> str | None:
    """Return `module.Class` of a class in a file, noting problems; None unless both are given."""
    file_name, class_name = section.text("classFileName"), section.text("className")
    if file_name is None or class_name is None:
        return None
    path = PurePosixPath(file_name)
    parts = path.with_suffix("").parts
    if path.suffix != ".py" or path.is_absolute() or any("." in part for part in parts):
        rule = "must be a Python file below codeDir"
        section.problem("classFileName", rule, file_name, "for example: my_tuner.py")
    if not class_name.isidentifier():
        section.problem("className", "must be the name of a class", class_name)
    return ".".join([*parts, class_name])


def _class_args(section: SectionReader) -> dict[str, Any] | None:
    arguments = section.raw("classArgs")
    if arguments is None:
        return None
    if not isinstance(arguments, dict):
        section.problem("classArgs", "must be a mapping of names to values", arguments)
        return None
    return copy.deepcopy(arguments)


def _trials(file: SectionReader) -> dict[str, Any]:
    file.require("trainingServicePlatform", f"one of {', '.join(PLATFORMS_V1)}")
    platform = file.choice("trainingServicePlatform", PLATFORMS_V1)
    if platform is None:
        for name in ("trial", *PLATFORM_SECTIONS):
            file.raw(name)
        return {}
    return platform_fields(file, platform)


def _remedies(document: Mapping[object, object]) -> dict[str, str]:
    """Return advice per field of a document that only schema v2 has, such as its name in v1."""
    known = {field.alias for field in ExperimentFields.model_fields.values()}
    return {
        str(name): f"schema v1 calls it {_NAMES_IN_V1[str(name)]}"
        if name in _NAMES_IN_V1
        else "it is of schema v2; convert the file with: nnictl config convert FILE"
        for name in document
        if name in known
    }
