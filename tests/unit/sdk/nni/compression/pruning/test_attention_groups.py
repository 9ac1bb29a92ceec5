import pytest
import torch

from nni.compression.pruning.attention_groups import attention_groups, check_projections
from tests.unit.sdk.nni.compression.attention_model import encoder, names_of, tokens

GROUP = ("q", "k", "v", "out")


def weights(shapes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    return {name: torch.zeros(shape) for name, shape in zip(GROUP, shapes, strict=True)}


def test_groups_are_given_by_name_or_found_from_a_run() -> None:
    model = encoder()

    assert [list(one) for one in attention_groups(model, names_of(), None)] == names_of()
    assert [list(one) for one in attention_groups(model, None, tokens())] == names_of()


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (None, "attention_name_groups or dummy_input must be given"),
        ([["attention.0.query"]], "must hold four names each, got"),
        ([["norms.0"] * 4], "has 'norms.0', which is no Linear layer"),
    ],
)
def test_wrong_groups_are_refused(named: list[list[str]] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        attention_groups(encoder(), named, None)


@pytest.mark.parametrize(
    ("shapes", "width", "message"),
    [
        ([(4, 3), (2, 3), (4, 3), (3, 4)], 2, "q, k, v must have equal shapes"),
        ([(4, 3), (4, 3), (4, 3), (3, 8)], 2, "out must read the 4 features of v, got 8"),
        ([(4, 3), (4, 3), (4, 3), (3, 4)], 3, "head_hidden_dim must divide the 4 features of q"),
    ],
)
def test_projections_that_do_not_fit_are_refused(
    shapes: list[tuple[int, int]], width: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_projections(GROUP, weights(shapes), width)


def test_projections_that_fit_pass() -> None:
    check_projections(GROUP, weights([(4, 3), (4, 3), (4, 3), (3, 4)]), 2)
