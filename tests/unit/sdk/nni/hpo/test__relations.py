"""Constraints that merely compare."""

import pytest

from nni.hpo._relations import Relation, relation_of


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("a < b", Relation("a", "<", "b")),
        ("model/lr<=0.1", Relation("model/lr", "<=", 0.1)),
        (" `batch size` >= -1e-3 ", Relation("batch size", ">=", -1e-3)),
        ("a > `b c`", Relation("a", ">", "b c")),
        ("a == 1", None),
        ("a + 1 < b", None),
        ("a < b < c", None),
        ("not a < b", None),
        ("1 < a", None),
    ],
)
def test_comparisons_are_recognised(text: str, relation: Relation | None) -> None:
    assert relation_of(text) == relation
