"""Networks of NNI 2.x that are decorated as a whole."""

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nni
import nni.retiarii.nn.pytorch as legacy
from nni.nas.nn.pytorch import ModelSpace, layers
from nni.retiarii import fixed_arch, model_wrapper
from nni.retiarii.deprecation import warn_once

SCRIPT = """\
import nni
import nni.retiarii.nn.pytorch as nn
from nni.nas.space import SimplifiedModelSpace
from nni.retiarii import model_wrapper


@model_wrapper
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LayerChoice([nn.ReLU(), nn.Tanh()])


space = SimplifiedModelSpace.from_model(Net())
print(nni.dump(space.freeze({"_mutation_1": "1"}), pickle_size_limit=65536))
"""

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Plain(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.first = legacy.LayerChoice([nn.Linear(width, width), nn.Identity()])
        self.rate = legacy.ValueChoice([0.0, 0.5])
        self.skip = legacy.InputChoice(2)
        self.hidden = layers.Linear(width, legacy.ValueChoice([3, 5], label="hidden"))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        first = self.skip([self.first(inputs), inputs])
        hidden: torch.Tensor = self.hidden(nn.functional.dropout(first, self.rate()))
        return hidden


with warnings.catch_warnings(action="ignore"):
    Net: Any = model_wrapper(Plain)
LABELS = ["_mutation_1", "_mutation_2", "_mutation_3", "hidden"]


@pytest.mark.claim("nas", 35)
def test_instances_of_a_wrapped_class_have_equal_automatic_labels() -> None:
    first, second = Net(), Net()

    assert sorted(first.simplify()) == sorted(second.simplify()) == LABELS


def test_wrapped_network_is_a_space_that_records_its_arguments() -> None:
    space = Net(6)

    assert isinstance(space, ModelSpace)
    assert space.trace_kwargs == {"width": 6}
    assert space.trace_symbol is Net


def test_sample_of_a_wrapped_network_is_frozen() -> None:
    sample = {"_mutation_1": "1", "_mutation_2": 0.5, "_mutation_3": 1, "hidden": 5}

    network = Net().freeze(sample)

    assert isinstance(network.first, nn.Identity)
    assert network.rate() == 0.5
    assert network.skip.chosen == [1]
    assert network(torch.zeros(2, 4)).shape == (2, 5)


def test_architecture_of_its_time_is_fixed_while_the_network_is_built() -> None:
    sample = {"_mutation_1": "1", "_mutation_2": 0.5, "_mutation_3": 0, "hidden": 3}

    with fixed_arch(sample):
        network = Net()

    assert isinstance(network.first, nn.Identity)
    assert network.rate() == 0.5
    assert network.skip.chosen == [0]
    assert network(torch.zeros(2, 4)).shape == (2, 3)


def test_space_has_labels_once_it_is_wrapped_only() -> None:
    assert model_wrapper(Net) is Net


def test_class_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match=r"cls must be a subclass of torch\.nn\.Module"):
        model_wrapper(int)  # type: ignore[type-var]  # it is the mistake


def test_decorator_warns_of_the_newer_name_once() -> None:
    warn_once.cache_clear()

    with pytest.warns(DeprecationWarning, match="ModelSpace") as caught:
        _ = [model_wrapper(Plain) for _ in range(2)]

    assert len(caught) == 1


def test_wrapped_class_of_the_main_script_travels_by_value(tmp_path: Path) -> None:
    script = tmp_path / "search.py"
    script.write_text(SCRIPT)

    done = subprocess.run(
        [sys.executable, "-W", "ignore", script], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    loaded = nni.load(done.stdout)
    assert loaded.sample == {"_mutation_1": "1"}
    assert isinstance(loaded.executable_model().layer, nn.Tanh)
