"""Small model spaces and searches without networks, for tests of strategies and engines."""

from nni.mutable import Categorical
from nni.nas.execution import ExecutionEngine
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.raw import RawFormatModelSpace
from nni.nas.strategy.base import Strategy
from nni.testing.strategies import TableSpace


def bits(count: int) -> RawFormatModelSpace:
    """Return a space of `count` dimensions 0 or 1, with labels `0`, `1`, …."""
    return RawFormatModelSpace(
        TableSpace(*(Categorical([0, 1], label=str(index)) for index in range(count)))
    )


def digits(size: int) -> RawFormatModelSpace:
    """Return a space of one dimension `a` with the values 0 to size - 1."""
    return RawFormatModelSpace(TableSpace(Categorical(list(range(size)), label="a")))


def frozen(value: int = 0, size: int = 10) -> ExecutableModelSpace:
    """Return a model of `digits`."""
    return digits(size).freeze({"a": value})


class Submitting(Strategy):
    """Strategy that submits given values of `digits`, one after another."""

    def __init__(self, *values: int) -> None:
        super().__init__()
        self.values = values

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        del engine
        return model_space

    def _run(self) -> None:
        for value in self.values:
            if not self.wait_for_resource():
                return
            self.engine.submit_models(self.model_space.freeze({"a": value}))

    def state_dict(self) -> dict[str, object]:
        return {"values": list(self.values)}

    def load_state_dict(self, state_dict: object) -> None:
        assert isinstance(state_dict, dict)
        self.values = tuple(state_dict["values"])
