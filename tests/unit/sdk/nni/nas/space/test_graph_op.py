"""Operations of nodes, and templates of arguments."""

import pytest

from nni.common.serializer import dump, load
from nni.nas.space.graph_op import (
    Cell,
    InputSlot,
    Operation,
    PyTorchOperation,
    TrainingMode,
    filled,
    slots_of,
)


@pytest.mark.parametrize(
    ("type_name", "cls"),
    [
        ("__torch__.torch.nn.ReLU", PyTorchOperation),
        ("Function.torch.relu", PyTorchOperation),
        ("Tensor.view", PyTorchOperation),
        ("_inputs", Operation),
    ],
)
def test_class_of_an_operation_follows_its_type(type_name: str, cls: type) -> None:
    assert type(Operation.new(type_name)) is cls


def test_cell_needs_the_name_of_its_graph() -> None:
    with pytest.raises(ValueError, match="cell_name must be given for the type '_cell'"):
        Operation.new("_cell")
    with pytest.raises(ValueError, match="and no other"):
        Operation.new("Function.torch.relu", cell_name="block")


def test_params_is_another_name_of_parameters() -> None:
    operation = Operation.new("Function.torch.relu", {"kernel": 3})

    assert operation.params == {"kernel": 3}


@pytest.mark.parametrize(
    "operation",
    [
        Operation.new("__torch__.torch.nn.Conv2d", {"kernel_size": (3, 3), "stride": 1}),
        Operation.new("_cell", {}, "block", {"input_shape": [[1, 2]]}),
        Operation.new("Function.torch.cat", {"args": [[InputSlot(0), InputSlot(1)], 1]}),
        Operation.new("Function.f", {"kwargs": {"training": TrainingMode(), "at": slice(1, 3)}}),
    ],
)
def test_operation_is_equal_after_a_dump(operation: Operation) -> None:
    loaded = load(dump(operation))

    assert loaded == operation
    assert type(loaded) is type(operation)


def test_cell_has_the_name_of_its_graph() -> None:
    operation = Operation.new("_cell", cell_name="block")

    assert isinstance(operation, Cell)
    assert operation.cell_name == "block"


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (Operation.new("__torch__.torch.nn.Linear", {"a": 4}), "torch.nn.Linear(a=4)"),
        (Operation.new("_cell", {}, "block", {"shape": 1}), "_cell block() {'shape': 1}"),
        (Operation.new("_inputs"), "_inputs()"),
    ],
)
def test_text_of_an_operation_is_a_call(operation: Operation, text: str) -> None:
    assert repr(operation) == text


def test_slots_are_filled_at_any_depth() -> None:
    template = ([InputSlot(1), 2], {"end": slice(InputSlot(0), None)})

    assert filled(template, "ab".__getitem__) == (["b", 2], {"end": slice("a", None)})
    assert list(slots_of(template)) == [1, 0]
