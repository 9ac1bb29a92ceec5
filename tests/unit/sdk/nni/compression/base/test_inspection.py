import pytest
from torch import nn

from nni.compression.base.inspection import config_list_canonical, module_infos
from tests.unit.sdk.nni.compression.resnet import resnet18


class NaiveModel(nn.Module):
    """The model of the quick start."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 20, 5)
        self.conv2 = nn.Conv2d(20, 50, 5)
        self.fc1 = nn.Linear(800, 500)
        self.fc2 = nn.Linear(500, 10)
        self.relu1 = nn.ReLU6()
        self.max_pool1 = nn.MaxPool2d(2)


def test_modules_have_type_and_own_parameters() -> None:
    infos = module_infos(nn.Sequential(nn.Sequential(nn.Linear(1, 1, bias=False))))

    assert infos["0"].parameters == frozenset()
    assert infos["0.0"].type_name == "Linear"
    assert infos["0.0"].parameters == {"weight"}


@pytest.mark.claim("compression", 2)
def test_default_selects_the_layers_with_weights() -> None:
    entries = config_list_canonical(NaiveModel(), [{"op_types": ["default"], "sparsity": 0.5}])

    assert [entry["op_names"] for entry in entries] == [["conv1"], ["conv2"], ["fc1"], ["fc2"]]


@pytest.mark.claim("compression", 6)
def test_parts_of_names_select_the_first_convolutions_of_a_resnet() -> None:
    config_list = [{"op_partial_names": ["conv1"], "op_types": ["Conv2d"], "sparsity": 0.5}]

    found = config_list_canonical(resnet18(), config_list)

    blocks = [f"layer{stage}.{block}.conv1" for stage in range(1, 5) for block in range(2)]
    assert [one["op_names"] for one in found] == [[name] for name in ["conv1", *blocks]]
