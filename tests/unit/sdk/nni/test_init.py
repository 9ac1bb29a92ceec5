from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nni
from tests.support.trial_agent import TrialAgent

LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def modules_after(statement: str, **environment: str) -> set[str]:
    """Return the modules that a new interpreter has loaded after a statement."""
    ended = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{LOADED}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return set(json.loads(ended.stdout.splitlines()[-1]))


def test_import_loads_nothing_but_itself() -> None:
    added = modules_after("import nni") - modules_after("pass")

    assert added == {"nni", "nni.version"}


def test_trial_that_reports_loads_no_third_party_module(tmp_path: Path) -> None:
    trial = "import nni; nni.get_next_parameter(); nni.report_final_result(1)"

    with TrialAgent(tmp_path, {}) as agent:
        added = modules_after(trial, **agent.environment()) - modules_after("pass")
        assert agent.metrics

    assert {name.partition(".")[0] for name in added} <= set(sys.stdlib_module_names) | {"nni"}
    assert "typing" not in added


@pytest.mark.parametrize("name", nni.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(nni, name) is not None
    assert name in dir(nni)


def test_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'nni' has no attribute 'get_parameters'"):
        nni.get_parameters  # noqa: B018 - it is the access that fails
