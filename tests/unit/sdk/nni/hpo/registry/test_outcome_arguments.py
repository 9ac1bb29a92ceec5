"""Arguments that need one objective."""

import pytest

from nni.hpo.registry.cost_arguments import COST_AWARE
from nni.hpo.registry.factory import validate
from nni.hpo.registry.outcome_arguments import ROBUST, check_single_outcome

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


@pytest.mark.parametrize("name", [COST_AWARE, ROBUST])
def test_argument_of_one_objective_is_refused_with_several_outcomes(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be false with several objectives"):
        check_single_outcome({name: True}, several_outcomes=True)

    check_single_outcome({name: True}, several_outcomes=False)
    check_single_outcome({name: False}, several_outcomes=True)
    check_single_outcome(None, several_outcomes=True)


@pytest.mark.parametrize("tuner", ["auto", "GPTuner"])
def test_configuration_is_checked(tuner: str) -> None:
    validate("tuner", tuner, {"robust": True}, SPACE)

    with pytest.raises(ValueError, match="robust"):
        validate("tuner", tuner, {"robust": True}, SPACE, several_outcomes=True)
    with pytest.raises(ValueError, match="robust"):
        validate("tuner", tuner, {"robust": "yes"}, SPACE)
