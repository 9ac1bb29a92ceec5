import inspect

import pytest

from nni.trial.channel import SocketTrialChannel
from nni.trial.ports import TrialChannel
from nni.trial.standalone import StandaloneTrialChannel


@pytest.mark.parametrize("adapter", [SocketTrialChannel, StandaloneTrialChannel])
@pytest.mark.parametrize("method", ["parameters", "report"])
def test_adapter_takes_the_arguments_of_the_port(adapter: type, method: str) -> None:
    promised = inspect.signature(getattr(TrialChannel, method)).parameters

    assert list(inspect.signature(getattr(adapter, method)).parameters) == list(promised)
