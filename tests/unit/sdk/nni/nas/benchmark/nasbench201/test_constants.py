"""Names of NAS-Bench-201."""

from nni.nas.benchmark.nasbench201.constants import DATASETS, EDGES, PRIMITIVES


def test_names_are_those_of_the_specification() -> None:
    assert PRIMITIVES == ("none", "skip_connect", "conv_1x1", "conv_3x3", "avg_pool_3x3")
    assert set(EDGES) == {"0_1", "0_2", "0_3", "1_2", "1_3", "2_3"}
    assert DATASETS == ("cifar10-valid", "cifar10", "cifar100", "imagenet16-120")
