"""Exports of `nni.hpo`: lazy, complete, and typed."""

import subprocess
import sys
from typing import assert_type

import pytest

import nni.hpo
from nni.hpo import CurveTable, MedianstopAssessor, RandomTuner, SimulatedRun, simulate


@pytest.mark.parametrize("name", nni.hpo.__all__)
def test_export_comes_from_its_home(name: str) -> None:
    home = sys.modules[nni.hpo._HOMES[name]] if getattr(nni.hpo, name) is not None else None

    assert getattr(home, name) is getattr(nni.hpo, name)


def test_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchTuner'"):
        _ = nni.hpo.NoSuchTuner


def test_exports_are_listed() -> None:
    assert set(nni.hpo.__all__) <= set(dir(nni.hpo))


def test_import_loads_no_algorithm_and_no_numpy() -> None:
    program = (
        "import sys, nni.hpo\n"
        "loaded = {name for name in sys.modules if name.startswith('nni.hpo.')}\n"
        "assert not loaded and 'numpy' not in sys.modules, loaded"
    )

    done = subprocess.run([sys.executable, "-c", program], check=False)

    assert done.returncode == 0


def simulated(table: CurveTable) -> SimulatedRun:
    """Return a run; the type checker compares the types, which are no `Any`."""
    run = simulate(table, tuner=RandomTuner(), trials=1)
    assert_type(run, SimulatedRun)
    assert_type(RandomTuner(), RandomTuner)
    assert_type(MedianstopAssessor(start_step=1), MedianstopAssessor)
    return run


def test_simulation_is_exported() -> None:
    assert callable(simulate)
    assert simulated.__annotations__["return"] is SimulatedRun


def test_a_missing_package_is_an_error_that_names_the_extra() -> None:
    program = (
        "import sys\n"
        "sys.modules['numpy'] = None\n"  # as if it were not installed
        "import nni.hpo\n"
        "nni.hpo.Study({'x': nni.hpo.Uniform(0, 1)}, tuner='Random').ask()\n"
        "from nni.hpo import TPETuner"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.stderr.splitlines()[-1] == (
        "ImportError: nni.hpo.TPETuner needs numpy; run: pip install 'nni[hpo]'"
    )
