from inspect import signature

from nni.hpo import MOASHA
from nni.testing import AdvisorDriver

SPACE = {"x": {"_type": "randint", "_value": [0, 100]}}


def test_what_is_not_beaten_is_promoted_first() -> None:
    modes = {"error": "minimize", "gain": "maximize"}
    host = AdvisorDriver(MOASHA(modes, max_budget=9, seed=0), SPACE)
    beaten, front, middle = host.request(3)
    for job, error, gain in ((beaten, 0.9, 0.1), (front, 0.1, 0.9), (middle, 0.5, 0.5)):
        host.report(job, {"error": error, "gain": gain})
        host.end(job)

    (promoted,) = host.request(1)

    assert promoted["parameters"]["x"] == front["parameters"]["x"]
    assert promoted["parameters"]["TRIAL_BUDGET"] == 3


def test_configurations_are_draws_of_the_prior_that_repeat() -> None:
    drawn = [
        [job["parameters"]["x"] for job in AdvisorDriver(MOASHA(seed=3), SPACE).request(4)]
        for _ in range(2)
    ]

    assert drawn[0] == drawn[1]


def test_largest_budget_is_81_unless_it_is_given() -> None:
    driver = AdvisorDriver(MOASHA(brackets=5, seed=0), SPACE)

    budgets = {job["parameters"]["TRIAL_BUDGET"] for job in driver.request(90)}

    assert budgets == {1, 3, 9, 27, 81}


def test_there_is_one_bracket_unless_more_are_given() -> None:
    driver = AdvisorDriver(MOASHA(seed=0), SPACE)

    budgets = {job["parameters"]["TRIAL_BUDGET"] for job in driver.request(90)}

    assert budgets == {1}


def test_documented_default_of_the_largest_budget_is_81() -> None:
    assert signature(MOASHA).parameters["max_budget"].default == 81
