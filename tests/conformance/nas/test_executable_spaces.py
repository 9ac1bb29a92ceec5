"""Every format of spaces passes the suite that `nni.testing.executable_spaces` ships."""

import torch
from torch import Tensor

from nni.nas.space import (
    ExecutableModelSpace,
    GraphModelSpace,
    RawFormatModelSpace,
    SimplifiedModelSpace,
)
from nni.nas.space.graph_op import Operation
from nni.testing.executable_spaces import ExecutableSpaceConformance
from tests.unit.sdk.nni.nas.graph_models import (
    AnchorNet,
    DepthMutator,
    EverySpace,
    OperationMutator,
    linear,
)

RELU = Operation.new("__torch__.torch.nn.modules.activation.ReLU")


class _Vectors(ExecutableSpaceConformance):
    def make_inputs(self) -> tuple[Tensor]:
        return (torch.ones(3, 4),)


class TestRawFormat(_Vectors):
    dumps = False

    def make(self) -> ExecutableModelSpace:
        return RawFormatModelSpace.from_model(EverySpace())


class TestSimplifiedFormat(_Vectors):
    def make(self) -> ExecutableModelSpace:
        return SimplifiedModelSpace.from_model(EverySpace())


class TestGraphs(_Vectors):
    def make(self) -> ExecutableModelSpace:
        return GraphModelSpace.from_model(EverySpace())


class TestStationaryMutators(_Vectors):
    def make(self) -> ExecutableModelSpace:
        candidates = [linear(4), RELU]
        return GraphModelSpace.from_model(
            AnchorNet(),
            mutators=[
                OperationMutator("first", candidates, "first"),
                OperationMutator("second", candidates),
            ],
        )


class TestDependentMutators(_Vectors):
    def make(self) -> ExecutableModelSpace:
        return GraphModelSpace.from_model(
            AnchorNet(),
            mutators=[
                OperationMutator("first", [linear(4)], "first"),
                OperationMutator("second", [linear(4), RELU], "second"),
                DepthMutator(label="depth"),
            ],
        )
