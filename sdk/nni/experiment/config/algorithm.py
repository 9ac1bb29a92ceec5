"""Configuration of algorithms: name or class, and arguments."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from nni.experiment.config.base import AbsolutePath, ConfigModel, Text, absolute_path
from nni.experiment.errors import Problem
from nni.hpo.registry.built_in import BUILT_IN
from nni.hpo.registry.factory import REMOVED_ALGORITHMS


class AlgorithmConfig(ConfigModel):
    """Tuner, assessor or advisor of an experiment: a name, a class or the address of a server.

    Exactly one of `name`, `class_name` and `server_address` is given.

    Examples:
        >>> from nni.experiment import AlgorithmConfig
        >>> tuner = AlgorithmConfig(name="TPE", class_args={"optimize_mode": "maximize"})
        >>> tuner.to_dict()
        {'name': 'TPE', 'classArgs': {'optimize_mode': 'maximize'}}
    """

    name: Text | None = None
    """Built-in or registered name; `GP`, `gp` and `GPTuner` are the same one."""
    class_name: Text | None = None
    """`module.Class` of an algorithm that no registry knows."""
    code_directory: AbsolutePath | None = None
    """Folder that holds the module of `class_name`; not given: the module is installed."""
    server_address: Text | None = None
    """`host:port` of a `nni_proto.tuning.v1.TuningService` in any language; only for a tuner."""
    class_args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the constructor."""

    def is_given(self) -> bool:
        """Return whether the section names an algorithm or holds arguments.

        Returns:
            False for a section that was never filled in.
        """
        named = self.name or self.class_name or self.server_address
        return bool(named or self.class_args)

    def problems(self, field: str) -> list[Problem]:
        """Return broken rules: one source only, a class that exists, `host:port` of a server.

        Args:
            field: path of the section, e.g. `tuner`.

        Returns:
            One problem per broken rule; empty if the section is valid.
        """
        sources = [
            label
            for label, value in (
                ("name", self.name),
                ("className", self.class_name),
                ("serverAddress", self.server_address),
            )
            if value
        ]
        if not sources:
            return [Problem(f"{field}.name", "must be given, or className")]
        found: list[Problem] = []
        if len(sources) > 1:
            rule = f"must have only one of {' and '.join(sources)}"
            found.append(Problem(field, rule))
        if self.code_directory is not None and not self.class_name:
            found.append(Problem(f"{field}.codeDirectory", "is only for className, not for name"))
        found.extend(self._class_problems(field))
        found.extend(self._server_problems(field))
        return found

    def _server_problems(self, field: str) -> list[Problem]:
        if not self.server_address:
            return []
        if field != "tuner":
            return [Problem(f"{field}.serverAddress", "is only for a tuner", self.server_address)]
        host, _, port = self.server_address.rpartition(":")
        if host and port.isdigit():
            return []
        return [Problem(f"{field}.serverAddress", "must be host:port", self.server_address)]

    def _class_problems(self, field: str) -> list[Problem]:
        if not self.class_name:
            return []
        module, _, class_name = self.class_name.rpartition(".")
        if not module or not class_name.isidentifier():
            rule = "must be a module and a class, such as my_tuner.MyTuner"
            return [Problem(f"{field}.className", rule, self.class_name)]
        if self.code_directory is not None and not self.code_directory.is_dir():
            rule = "must be an existing folder"
            return [Problem(f"{field}.codeDirectory", rule, str(self.code_directory))]
        if not self._has_module(module):
            where = f"neither in {self.code_directory} nor" if self.code_directory else "not"
            rule = f"must name a module that exists; {module} is {where} installed"
            return [Problem(f"{field}.className", rule, self.class_name)]
        if module.startswith("nni.") and not _has_submodule(module):
            rule = f"must name a module that exists; nni has no {module}"
            return [Problem(f"{field}.className", rule, self.class_name, _name_of(class_name))]
        return []

    def _has_module(self, module: str) -> bool:
        """Return whether there is such a module, without importing the user's code."""
        head, *rest = module.split(".")
        if self.code_directory is not None:
            place = self.code_directory.joinpath(head, *rest)
            if place.with_suffix(".py").exists() or place.is_dir():
                return True
            if self.code_directory.joinpath(head).is_dir():
                return False
        return head in sys.modules or find_spec(head) is not None


def _has_submodule(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _name_of(class_name: str) -> str:
    """Return the remedy for a class of NNI 1.x: the name to write instead; empty for others."""
    if class_name in REMOVED_ALGORITHMS:
        return REMOVED_ALGORITHMS[class_name]
    for entry in BUILT_IN:
        if entry.documented_path.endswith(f".{class_name}"):
            return f"write name: {entry.name}, or className: {entry.documented_path}"
    return ""


def _section(value: object) -> object:
    return AlgorithmConfig() if value is None else value


AlgorithmSection = Annotated[AlgorithmConfig, BeforeValidator(_section)]
"""A section that is always there: `None` empties it."""


class CustomAlgorithmConfig(AlgorithmConfig):
    """Algorithm of the user's own, whose code lies in a folder.

    Examples:
        >>> from nni.experiment import CustomAlgorithmConfig
        >>> tuner = CustomAlgorithmConfig(class_name="my_tuner.MyTuner", class_args={"depth": 3})
        >>> tuner.class_name
        'my_tuner.MyTuner'
    """

    code_directory: AbsolutePath | None = Field(default_factory=lambda: absolute_path("."))
    """Folder that holds the module of `class_name`."""
