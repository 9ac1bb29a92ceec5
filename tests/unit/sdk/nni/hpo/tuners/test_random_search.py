"""Random search."""

import json
import subprocess
import sys

import pytest

from nni.hpo import RandomTuner

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def test_results_change_nothing() -> None:
    informed, silent = RandomTuner(seed=1), RandomTuner(seed=1)
    for tuner in (informed, silent):
        tuner.update_search_space(SPACE)

    for parameter_id in range(20):
        parameters = informed.generate_parameters(parameter_id)
        informed.receive_trial_result(parameter_id, parameters, 1.0)
        assert silent.generate_parameters(parameter_id) == parameters


def test_proposals_are_draws_of_the_space_that_differ() -> None:
    tuner = RandomTuner(seed=1)
    tuner.update_search_space(SPACE)

    found = [tuner.generate_parameters(number)["x"] for number in range(20)]

    assert len(set(found)) == 20
    assert all(0 <= x <= 1 for x in found)


def test_may_be_asked_early() -> None:
    assert RandomTuner.lookahead


def test_bad_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="optimize_mode must be"):
        RandomTuner("max")


def test_needs_no_numeric_package() -> None:
    program = (
        "import sys\n"
        "from nni.hpo import RandomTuner, GridSearchTuner, BatchTuner, MedianstopAssessor\n"
        f"tuner = RandomTuner(seed=0); tuner.update_search_space({SPACE!r})\n"
        "tuner.generate_parameters(0)\n"
        "assert not {'numpy', 'scipy', 'grpc', 'pydantic'} & set(sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], check=False)

    assert done.returncode == 0


def test_goes_on_from_its_state() -> None:
    first, second = RandomTuner(seed=1), RandomTuner(seed=2)
    for tuner in (first, second):
        tuner.update_search_space(SPACE)
    first.generate_parameters(0)

    second.load_state(json.loads(json.dumps(first.state())))

    assert second.generate_parameters(1) == first.generate_parameters(1)


def test_space_has_no_parameters_at_first() -> None:
    assert RandomTuner(seed=1).generate_parameters(0) == {}
