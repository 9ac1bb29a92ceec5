"""Every built-in advisor against the shipped suite."""

from pathlib import Path
from typing import ClassVar

from nni.hpo import ASHA, BOHB, MOASHA, Hyperband, MsgDispatcherBase
from nni.hpo.json_value import JsonValue
from nni.testing import AdvisorConformance, AdvisorDriver
from tests.support.search_spaces import EACH_TYPE, GRID, NESTED

BUDGET = frozenset({"TRIAL_BUDGET"})
CHECKPOINTS = frozenset({"load_checkpoint_dir", "save_checkpoint_dir"})
PCS = """\
# a model and its parameters
model categorical {svm, forest, linear} [svm]
c real [0.01, 100] [1] log
depth integer [1, 32] [8] log
trees integer [10, 500] [100]
size ordinal {small, medium, large} [medium]
c | model in {svm, linear}
depth | model == forest
trees | model == forest && size > small
{model=linear, size=large}
"""


class TestHyperband(AdvisorConformance):
    search_space = EACH_TYPE
    extra_keys = BUDGET

    def make(self, seed: int) -> MsgDispatcherBase:
        return Hyperband(R=9, seed=seed)


class TestHyperbandSerial(AdvisorConformance):
    search_space = EACH_TYPE
    extra_keys = BUDGET

    def make(self, seed: int) -> MsgDispatcherBase:
        return Hyperband(R=8, eta=2, exec_mode="serial", optimize_mode="minimize", seed=seed)


class TestHyperbandOneBudget(AdvisorConformance):
    search_space = GRID
    extra_keys = BUDGET

    def make(self, seed: int) -> MsgDispatcherBase:
        return Hyperband(R=1, seed=seed)


class TestASHA(AdvisorConformance):
    search_space = EACH_TYPE
    extra_keys = BUDGET
    optional_keys = CHECKPOINTS

    def make(self, seed: int) -> MsgDispatcherBase:
        return ASHA(max_budget=9, seed=seed)


class TestASHANested(AdvisorConformance):
    search_space = NESTED
    extra_keys = BUDGET
    optional_keys = CHECKPOINTS

    def make(self, seed: int) -> MsgDispatcherBase:
        return ASHA("minimize", max_budget=9, brackets=2, searcher="TPE", seed=seed)


class TestASHAStopping(AdvisorConformance):
    search_space = EACH_TYPE
    extra_keys = BUDGET
    optional_keys = CHECKPOINTS

    def make(self, seed: int) -> MsgDispatcherBase:
        return ASHA(max_budget=9, mode="stopping", searcher="TPE", seed=seed)


class TestMOASHA(AdvisorConformance):
    search_space = EACH_TYPE
    extra_keys = BUDGET
    optional_keys = CHECKPOINTS

    def make(self, seed: int) -> MsgDispatcherBase:
        return MOASHA("minimize", max_budget=9, seed=seed)


class TestBOHB(AdvisorConformance):
    search_space = EACH_TYPE
    extra_keys = BUDGET

    def make(self, seed: int) -> MsgDispatcherBase:
        return BOHB(max_budget=9, seed=seed)


class TestBOHBModel(AdvisorConformance):
    search_space = GRID
    extra_keys = BUDGET

    def make(self, seed: int) -> MsgDispatcherBase:
        return BOHB("minimize", max_budget=9, random_fraction=0.0, seed=seed)


class TestBOHBAsynchronous(AdvisorConformance):
    search_space = EACH_TYPE
    extra_keys = BUDGET
    optional_keys = CHECKPOINTS

    def make(self, seed: int) -> MsgDispatcherBase:
        return BOHB(
            "minimize",
            max_budget=9,
            random_fraction=0.0,
            exec_mode="asynchronous",
            checkpoints=True,
            seed=seed,
        )


class TestBOHBEmptySpace(AdvisorConformance):
    search_space: ClassVar[JsonValue] = {}
    extra_keys = BUDGET

    def make(self, seed: int) -> MsgDispatcherBase:
        return BOHB(seed=seed)


def test_bohb_with_a_space_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "space.pcs"
    path.write_text(PCS)
    advisor = BOHB(max_budget=9, config_space=str(path), random_fraction=0.1, seed=0)
    driver = AdvisorDriver(advisor, {"ignored": "by its documentation"})

    for job in driver.play(300, concurrency=4):
        model, size = job["parameters"]["model"], job["parameters"]["size"]
        assert (model, size) != ("linear", "large")
        assert job["parameters"].keys() == {"model", "size", "TRIAL_BUDGET"} | (
            {"c"} if model != "forest" else {"depth"} | ({"trees"} if size != "small" else set())
        )
