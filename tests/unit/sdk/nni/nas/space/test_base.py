"""Base of model spaces."""

from nni.mutable import Mutable
from nni.nas.nn.pytorch import ModelSpace
from nni.nas.space import BaseModelSpace, ExecutableModelSpace


def test_networks_and_executable_models_are_spaces() -> None:
    assert issubclass(ModelSpace, BaseModelSpace)
    assert issubclass(ExecutableModelSpace, BaseModelSpace)
    assert issubclass(BaseModelSpace, Mutable)
