"""Experiment that searches over compression algorithms and their settings."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nni.compression.experiment.interface import AbstractAutoCompressionModule
from nni.experiment.errors import ConfigError, Problem
from nni.experiment.experiment import Experiment
from nni.experiment.run_mode import RunMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nni.experiment.config import ExperimentConfig

_TRIAL: Final = "nni.compression.experiment.trial_entry"


class AutoCompressionExperiment(Experiment):
    """Experiment each of whose trials compresses a model, fine-tunes and evaluates it.

    `config.trial_command` is set at the start. The search space is that of an
    `AutoCompressionSearchSpaceGenerator`, which every tuner with nested choices can search.

    Args:
        auto_compress_module: class with the model, in a file below `config.trial_code_directory`.
        config: a platform name such as `"local"`, several of them, or a ready configuration.

    Raises:
        TypeError: `auto_compress_module` is no `AbstractAutoCompressionModule`.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.experiment import AbstractAutoCompressionModule
        >>> from nni.compression.experiment import AutoCompressionExperiment
        >>> class Module(AbstractAutoCompressionModule):
        ...     @classmethod
        ...     def model(cls):
        ...         return nn.Sequential(nn.Linear(4, 2))
        ...     @classmethod
        ...     def evaluator(cls):
        ...         return lambda model: 0.0
        >>> experiment = AutoCompressionExperiment(Module, "local")
        >>> experiment.config.max_trial_number = 10
        >>> experiment.config.tuner.name = "TPE"
    """

    def __init__(
        self,
        auto_compress_module: type[AbstractAutoCompressionModule],
        config: ExperimentConfig | str | Sequence[str] = "local",
    ) -> None:
        given: object = auto_compress_module
        if not (isinstance(given, type) and issubclass(given, AbstractAutoCompressionModule)):
            raise TypeError(
                "auto_compress_module must be a class that derives from "
                f"AbstractAutoCompressionModule, got {given!r}"
            )
        super().__init__(config)
        self.auto_compress_module = auto_compress_module

    def start(  # noqa: D102 - see the base
        self,
        port: int | None = None,
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
        run_mode: RunMode = RunMode.Background,
    ) -> None:
        self.config.trial_command = trial_command(
            self.auto_compress_module, Path(self.config.trial_code_directory)
        )
        super().start(port, debug, run_mode)


def trial_command(module: type[AbstractAutoCompressionModule], code_directory: Path) -> str:
    """Return a trial's shell command for a class and its file, which must be in the folder.

    Args:
        module: code of the user.
        code_directory: folder that trials get.

    Returns:
        A command line for `trial_command`.

    Raises:
        ConfigError: the file of the class is not below the folder.
    """
    path = Path(inspect.getfile(module)).resolve()
    root = code_directory.resolve()
    if not path.is_relative_to(root):
        raise ConfigError(
            [
                Problem(
                    "trialCodeDirectory",
                    f"must hold the file of {module.__name__}, {path}",
                    str(code_directory),
                    remedy="set it to the folder of that file, or to one above",
                )
            ]
        )
    name = path.relative_to(root).as_posix()
    return shlex.join(
        [
            *("python3", "-m", _TRIAL),
            *("--module_file_name", name),
            *("--module_class_name", module.__name__),
        ]
    )
