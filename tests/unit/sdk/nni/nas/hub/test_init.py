"""The hub of the selected framework is reached by a shorter path."""

from nni.nas import hub
from nni.nas.hub import pytorch


def test_spaces_of_the_default_framework_are_here() -> None:
    assert hub.NasBench201 is pytorch.NasBench201
