"""Searches that configurations of examples describe, run in this process without services."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from nni.experiment.config import AlgorithmConfig, ExperimentConfig
from nni.experiment.config.checks import check
from nni.hpo import OptimizeResult, optimize
from nni.hpo.registry.factory import create, create_custom
from tests.support.scripts import ROOT

_Kind = Literal["tuner", "assessor", "advisor"]
_KINDS: Final[tuple[_Kind, ...]] = ("tuner", "assessor", "advisor")


class ExampleSearch:
    """Configuration of an example, and the function of its trial that computes results.

    Args:
        folder: of the example, below `examples`.
        function: name of a function of `trial.py`, from parameters to results.
        config: file name of the configuration, which must be valid.
    """

    def __init__(self, folder: str, function: str, config: str = "config.yml") -> None:
        self._folder = ROOT / "examples" / folder
        with _imports_from(self._folder):
            self.trial = runpy.run_path(str(self._folder / "trial.py"), run_name="trial")
        self._objective = self.trial[function]
        self.config = ExperimentConfig.load(self._folder / config)
        check(self.config)

    def run(self, trials: int, **class_args: object) -> OptimizeResult:
        """Run the search, one trial at a time.

        Args:
            trials: largest number of trials; at most that of the configuration.
            class_args: arguments of tuner or advisor that differ from the configuration.
        """
        assert self.config.max_trial_number is not None
        assert trials <= self.config.max_trial_number
        algorithms: dict[str, Any] = {}
        mode = "maximize"
        with _imports_from(self._folder):
            for kind in _KINDS:
                section = getattr(self.config, kind)
                if section is None or not section.is_given():
                    continue
                changed = {} if kind == "assessor" else class_args
                mode = section.class_args.get("optimize_mode", mode)
                algorithms[kind] = _algorithm(kind, section, section.class_args | changed)
        return optimize(
            self._objective,
            self.config.search_space,
            trials=trials,
            optimize_mode=mode,
            **algorithms,
        )


def _algorithm(kind: _Kind, section: AlgorithmConfig, class_args: dict[str, Any]) -> object:
    if section.class_name is not None:
        return create_custom(kind, section.class_name, class_args, section.code_directory)
    assert section.name is not None
    return create(kind, section.name, class_args)


@contextmanager
def _imports_from(folder: Path) -> Iterator[None]:
    """Import from the folder of an example as its scripts do; forget its modules at the end."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(folder), *sys.path])
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setenv("OMP_NUM_THREADS", "1")  # which the scripts set; restored at the end
        yield
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
