"""Names of the vertices of NAS-Bench-101."""

from nni.nas.benchmark import nasbench101
from nni.nas.benchmark.nasbench101.constants import LABELS


def test_names_are_those_of_the_published_data() -> None:
    assert list(LABELS) == ["input", "output", "conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3"]
    assert nasbench101.MAXPOOL3X3 == "maxpool3x3"
