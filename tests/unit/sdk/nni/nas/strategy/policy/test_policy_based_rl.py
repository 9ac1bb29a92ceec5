import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from nni.mutable import Categorical, CategoricalMultiple, ExpressionConstraint
from nni.nas.space import RawFormatModelSpace
from nni.nas.strategy import PolicyBasedRL
from nni.nas.strategy.policy.game import SampleGame
from nni.nas.strategy.policy.ppo import Trajectory
from nni.testing.strategies import SimulatedEngine, TableSpace
from tests.support.architecture_search import digits


class Counting:
    """Policy that plays 0, 1, 2, … in a game of one step, and records its updates."""

    def __init__(self, game: SampleGame) -> None:
        (self.actions,) = game.action_counts
        self.played = 0
        self.updates: list[tuple[list[float], int, int]] = []

    def play(self) -> list[int]:
        self.played += 1
        return [(self.played - 1) % self.actions]

    def update(self, trajectories: Sequence[Trajectory], *, batch_size: int, repeat: int) -> None:
        self.updates.append(([one.reward for one in trajectories], batch_size, repeat))

    def state_dict(self) -> dict[str, Any]:
        return {"played": self.played}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self.played = state_dict["played"]


def search(space: RawFormatModelSpace, engine: SimulatedEngine, **arguments: Any) -> Counting:
    made: list[Counting] = []

    def policy(game: SampleGame) -> Counting:
        made.append(Counting(game))
        return made[0]

    PolicyBasedRL(policy_fn=policy, **arguments)(space, engine)
    return made[0]


def value_of(sample: dict[str, Any]) -> float:
    return float(sample["a"])


def odd_digits(size: int) -> RawFormatModelSpace:
    a = Categorical(list(range(size)), label="a")
    return RawFormatModelSpace(TableSpace(a, ExpressionConstraint(a % 2 == 1, label="odd")))


def test_policy_is_updated_after_each_group_of_models() -> None:
    policy = search(
        digits(100),
        SimulatedEngine(value_of, 7),
        samples_per_update=3,
        update_kwargs={"update_times": 2, "batch_size": 4},
    )

    assert policy.updates == [
        ([0, 1, 2], 4, 5),
        ([0, 1, 2], 4, 5),
        ([3, 4, 5], 4, 5),
        ([3, 4, 5], 4, 5),
    ]


def test_buffer_keeps_older_games() -> None:
    policy = search(
        digits(100),
        SimulatedEngine(value_of, 7),
        samples_per_update=3,
        replay_buffer_size=5,
        update_kwargs={"update_times": 1},
    )

    assert [rewards for rewards, _, _ in policy.updates] == [[0, 1, 2], [1, 2, 3, 4, 5]]


def test_invalid_samples_are_not_evaluated_and_get_their_reward() -> None:
    engine = SimulatedEngine(value_of, 3)
    policy = search(
        odd_digits(100),
        engine,
        samples_per_update=4,
        reward_for_invalid=-1,
        update_kwargs={"update_times": 1},
    )

    assert [sample["a"] for sample in engine.samples] == [1, 3, 5]
    assert policy.updates[0][0] == [-1, 1, -1, 3]


def test_invalid_samples_and_failed_models_teach_nothing_without_a_reward() -> None:
    engine = SimulatedEngine(lambda sample: None if sample["a"] == 3 else value_of(sample), 4)
    policy = search(
        odd_digits(100), engine, samples_per_update=2, update_kwargs={"update_times": 1}
    )

    assert [rewards for rewards, _, _ in policy.updates] == [[1, 5]]


def test_an_infinite_metric_is_rewarded_as_an_invalid_one() -> None:
    policy = search(
        digits(6),
        SimulatedEngine(lambda sample: math.inf if sample["a"] == 1 else value_of(sample), 4),
        samples_per_update=3,
        reward_for_invalid=-1.0,
        update_kwargs={"update_times": 1},
    )

    assert [rewards for rewards, _, _ in policy.updates] == [[0, -1, 2]]


def test_more_than_twenty_invalid_samples_in_a_row_end_the_search() -> None:
    a = Categorical(list(range(100)), label="a")
    space = RawFormatModelSpace(TableSpace(a, ExpressionConstraint(a < 3, label="small")))
    engine = SimulatedEngine(value_of)

    policy = search(space, engine)

    assert len(engine.samples) == 3
    assert policy.played == 3 + 21


def test_games_that_were_not_learned_from_survive_a_resume() -> None:
    first = PolicyBasedRL(policy_fn=Counting, samples_per_update=3)
    first(digits(100), SimulatedEngine(value_of, 2))

    made: list[Counting] = []

    def policy(game: SampleGame) -> Counting:
        made.append(Counting(game))
        return made[0]

    second = PolicyBasedRL(policy_fn=policy, samples_per_update=3)
    second.initialize(digits(100), SimulatedEngine(value_of, 2))
    second.load_state_dict(first.state_dict())
    second.run()

    assert made[0].updates[0][0] == [0, 1, 2]


def test_ppo_finds_better_models_with_time() -> None:
    space = RawFormatModelSpace(
        TableSpace(
            *(Categorical(list(range(4)), label=label) for label in "abc"),
            CategoricalMultiple(list(range(3)), n_chosen=None, label="subset"),
        )
    )
    engine = SimulatedEngine(lambda s: s["a"] + s["b"] - s["c"] + len(s["subset"]), 200)

    PolicyBasedRL(seed=0, update_kwargs={"batch_size": 64, "update_times": 8})(space, engine)

    metrics = [model.metric for model in engine.submitted]
    # A random model has 1.5 + 1.5 - 1.5 + 1.5 = 3 with deviation 2.1, the mean of 40 of them 0.33.
    # `bench_nas_strategies` compares 20 seeds.
    assert sum(metrics[-40:]) / 40 > 3 + 4 * 0.33


@pytest.mark.claim("nas", 46)
def test_choice_of_two_inputs_is_refused() -> None:
    space = RawFormatModelSpace(
        TableSpace(CategoricalMultiple([0, 1, 2, 3], n_chosen=2, label="inputs"))
    )

    with pytest.raises(ValueError, match=r"'inputs' is .*; use RegularizedEvolution"):
        PolicyBasedRL().initialize(space, SimulatedEngine(value_of))


@pytest.mark.claim("nas", 46)
def test_neither_tianshou_nor_gym_is_needed() -> None:
    code = (
        "import sys\n"
        "from nni.nas.strategy import PolicyBasedRL\n"
        "import nni.nas.strategy.policy.ppo\n"
        "print({'tianshou', 'gym', 'gymnasium'} & set(sys.modules))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert ran.stdout == "set()\n"


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="samples_per_update must be >= 1, got 0"):
        PolicyBasedRL(samples_per_update=0)
    with pytest.raises(ValueError, match="update_kwargs must have keys of batch_size"):
        PolicyBasedRL(update_kwargs={"epochs": 3})


def test_keywords_of_nni_2_are_renamed_or_ignored_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="is now samples_per_update"):
        PolicyBasedRL(trial_per_collect=3)
    with pytest.warns(DeprecationWarning, match="max_collect of PolicyBasedRL has no effect"):
        PolicyBasedRL(max_collect=3)
