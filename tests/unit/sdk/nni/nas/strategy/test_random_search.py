import pytest

from nni.mutable import Categorical, ExpressionConstraint
from nni.nas.space.raw import RawFormatModelSpace
from nni.nas.strategy import Random
from nni.testing.strategies import SimulatedEngine, TableSpace
from tests.support.architecture_search import digits


@pytest.mark.claim("nas", 41)
def test_each_model_of_a_small_space_is_submitted_once() -> None:
    space = RawFormatModelSpace(
        TableSpace(
            Categorical([0, 1], label="a"),
            Categorical([0, 1, 2], label="b"),
            Categorical([0, 1, 2], label="c"),
        )
    )
    engine = SimulatedEngine(lambda _sample: 1.0)

    # 500 draws miss the last of 18 models with a probability of (17/18)^500 < 1e-12.
    Random(dedup=True)(space, engine)

    assert len(engine.samples) == 18
    assert len({tuple(sample.values()) for sample in engine.samples}) == 18


def test_without_dedup_models_repeat_until_the_budget_ends() -> None:
    engine = SimulatedEngine(lambda _sample: 1.0, 50)

    Random(dedup=False, seed=0)(digits(3), engine)

    assert len(engine.samples) == 50


def test_constraints_are_kept_by_drawing_again() -> None:
    a, b = Categorical([1, 2, 3], label="a"), Categorical([1, 2, 3], label="b")
    rule = ExpressionConstraint(a + b == 4, label="rule")
    engine = SimulatedEngine(lambda _sample: 1.0)

    Random(seed=0)(RawFormatModelSpace(TableSpace(a, b, rule)), engine)

    assert sorted((sample["a"], sample["b"]) for sample in engine.samples) == [
        (1, 3),
        (2, 2),
        (3, 1),
    ]


@pytest.mark.parametrize("name", ["variational", "model_filter", "optimize_mode"])
def test_keywords_of_nni_2_are_ignored_with_a_warning(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name} of Random has no effect any more"):
        Random(**{name: None})  # type: ignore[arg-type]  # an old keyword
