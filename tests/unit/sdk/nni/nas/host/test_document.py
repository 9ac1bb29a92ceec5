"""Documents of explorations."""

from __future__ import annotations

import json
from collections import UserList
from pathlib import Path

import pytest

from nni.common.serializer import PayloadTooLarge
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.host.document import dump_exploration, load_exploration
from nni.nas.space import SimplifiedModelSpace
from nni.nas.strategy import Chain, Random
from nni.nas.strategy.middleware import Deduplication
from tests.support.architecture_search import Submitting
from tests.support.explored_space import Widths, measure, widths


def test_space_evaluator_and_strategy_travel() -> None:
    text = dump_exploration(widths(), Chain(Random(seed=1), Deduplication("invalid")))

    parts = load_exploration(text)

    model = parts.space.freeze({"width": 3})
    assert model.executable_model().layer.out_features == 3
    assert isinstance(parts.strategy, Chain)
    assert isinstance(parts.strategy[1], Deduplication)


def test_strategy_of_a_user_travels_by_its_constructor() -> None:
    strategy = load_exploration(dump_exploration(widths(), Submitting(3, 1))).strategy

    assert isinstance(strategy, Submitting)
    assert strategy.values == (3, 1)


def test_strategy_that_was_used_is_refused() -> None:
    strategy = Random(seed=0)
    strategy._status = type(strategy.status)("running")

    with pytest.raises(ValueError, match="must not have been used, it is running"):
        dump_exploration(widths(), strategy)


def test_large_part_that_is_no_traced_call_is_refused() -> None:
    evaluator = FunctionalEvaluator(measure, data=UserList(range(100_000)))
    space = SimplifiedModelSpace.from_model(Widths(), evaluator)

    with pytest.raises(PayloadTooLarge, match="data"):
        dump_exploration(space, Random(seed=0))


def test_large_part_travels_in_the_document_if_candidates_may_spill_it(tmp_path: Path) -> None:
    evaluator = FunctionalEvaluator(measure, data=UserList(range(100_000)))
    space = SimplifiedModelSpace.from_model(Widths(), evaluator)

    parts = load_exploration(dump_exploration(space, Random(seed=0), tmp_path))

    assert parts.payloads is not None
    assert parts.payloads.folder == tmp_path
    assert parts.space.evaluator.arguments["data"] == UserList(range(100_000))


def test_other_version_is_refused_before_anything_is_opened() -> None:
    fields = json.loads(dump_exploration(widths(), Random(seed=0)))
    fields["nni_version"] = "0.1"

    with pytest.raises(ValueError, match=r"created by nni 0\.1"):
        load_exploration(json.dumps(fields))


def test_document_without_a_strategy_is_refused() -> None:
    fields = json.loads(dump_exploration(widths(), Random(seed=0)))
    fields["strategy"] = 1

    with pytest.raises(TypeError, match="must hold a space and a strategy"):
        load_exploration(json.dumps(fields))
