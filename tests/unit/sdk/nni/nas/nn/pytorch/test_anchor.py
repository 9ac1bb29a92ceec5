"""Places that mutators find by their label."""

import torch

from nni.common.serializer import dump, load
from nni.nas.nn.pytorch import MutationAnchor
from nni.nas.utils import is_basic_unit


def test_anchor_returns_its_input() -> None:
    inputs = torch.ones(2)

    assert MutationAnchor(label="block", channels=3)(inputs) is inputs


def test_anchor_is_a_basic_unit_with_its_information() -> None:
    anchor = load(dump(MutationAnchor(label="block", channels=3)))

    assert is_basic_unit(anchor)
    assert (anchor.label, anchor.info) == ("block", {"channels": 3})


def test_text_shows_label_and_information() -> None:
    assert repr(MutationAnchor(label="block", channels=3)) == (
        "MutationAnchor(label='block', channels=3)"
    )
