"""Choice between child processes and external servers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.errors import FailedPreconditionError
from svc_dispatcher.adapters.host_launcher import SelectingHostLauncher
from svc_dispatcher.adapters.server_host import ServerHost
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.values import AlgorithmChoice, ExperimentSetup
from tests.support.tuning_server import tuning_server


class NullSink:
    def on_outputs(self, outputs: Sequence[answers.Output]) -> None:
        pass

    def on_end(self, reason: str) -> None:
        pass


def setup(folder: Path) -> ExperimentSetup:
    return ExperimentSetup(
        experiment_id="exp",
        directory=str(folder),
        interpreter="/no/such/python",
        tuner=AlgorithmChoice(name="Random"),
        assessor=None,
        advisor=None,
        search_space=None,
        seed=1,
        log_level="info",
    )


async def test_algorithm_with_an_address_is_a_session_of_its_server(tmp_path: Path) -> None:
    async with tuning_server() as (_, address):
        choice = AlgorithmChoice(server_address=address)
        made = replace(setup(tmp_path), tuner=choice)

        host = await SelectingHostLauncher({}).launch(made, NullSink(), eager=False)
        await host.aclose()

    assert isinstance(host, ServerHost)


async def test_other_algorithms_are_child_processes(tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError, match="'/no/such/python'"):
        await SelectingHostLauncher({}).launch(setup(tmp_path), NullSink(), eager=False)


async def test_advisor_without_a_tuner_is_a_child_process(tmp_path: Path) -> None:
    made = replace(setup(tmp_path), tuner=None, advisor=AlgorithmChoice(name="Hyperband"))

    with pytest.raises(FailedPreconditionError, match="'/no/such/python'"):
        await SelectingHostLauncher({}).launch(made, NullSink(), eager=False)
