"""Submission of a search to the NAS service, without following it."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from nni.experiment.errors import ConfigError, Problem
from nni.nas.execution.model_graph import model_graph_of
from nni.nas.execution.search_space import search_space_of
from nni.nas.experiment.config import ServiceEngineConfig
from nni.nas.experiment.engines import create_space
from nni.nas.experiment.experiment import NasExperiment
from nni.nas.experiment.explorations import create_exploration

_FIELD: Final = "MODULE:NAME"


def load_search(target: str) -> NasExperiment:
    """Import `module:name`; return that NasExperiment, or the result of that function; or raise.

    Args:
        target: `module:name` of a `NasExperiment`, or of a function without arguments that returns
            one. Modules are found from the working directory.

    Raises:
        ConfigError: there is no such module or name, it is no search, or the user's code raised an
            error.
    """
    module_name, colon, name = target.partition(":")
    if not colon or not module_name or not name.isidentifier():
        raise _refusal("must be a module, a colon and a name, such as search:build", target)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _module(module_name, target)
    if not hasattr(module, name):
        raise _refusal(f"does not exist: module {module_name} has no {name}", target)
    found: Any = getattr(module, name)
    try:
        made = found() if callable(found) and not isinstance(found, NasExperiment) else found
    except Exception as error:
        raise _refusal(f"raised {_cause(error)}", target) from error
    if not isinstance(made, NasExperiment):
        raise _refusal(
            "must be a NasExperiment or a function that returns one, got an object of type "
            f"{type(made).__name__}",
            target,
        )
    return made


def _module(name: str, target: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        is_own = error.name is not None and f"{name}.".startswith(f"{error.name}.")
        remedy = "call this where the module is" if is_own else "install it, or change the module"
        raise _refusal(f"cannot be imported: {error}; {remedy}", target) from error
    except Exception as error:
        raise _refusal(f"cannot be imported: {_cause(error)}", target) from error


def _cause(error: Exception) -> str:
    """Return an error of the user's code in one line, with the place in the working directory."""
    frames = traceback.extract_tb(error.__traceback__)
    here = str(Path.cwd())
    own = [one for one in frames if Path(one.filename).is_relative_to(here)]
    place = f" at {own[-1].filename}:{own[-1].lineno}" if own else ""
    return f"{type(error).__name__}: {error}{place}"


def _refusal(problem: str, target: str) -> ConfigError:
    return ConfigError([Problem(_FIELD, problem, target)])


def submit_search(experiment: NasExperiment, *, port: int = 0) -> str:
    """Create the exploration of a search, whatever engine it names; return its id.

    Args:
        experiment: search that was not started.
        port: of the experiment's page; 0: none.

    Raises:
        ValueError: the configuration breaks a rule, or a part cannot travel; nothing was started.
        nni.experiment.errors.ExperimentError: the services refuse it, or cannot be reached.
    """
    config = experiment.config.model_copy(deep=True)
    config.execution_engine = ServiceEngineConfig()
    parts = (experiment.model_space, experiment.evaluator)
    canonical = config.canonical(*parts, experiment.strategy)
    space = create_space(canonical, *parts)
    described = search_space_of(experiment.model_space, space.simplify())
    return create_exploration(
        canonical,
        space,
        experiment.strategy,
        port=port,
        search_space=described,
        model_graph=model_graph_of(experiment.model_space),
    )
