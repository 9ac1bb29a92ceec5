import subprocess
import sys
from pathlib import Path

from nni.experiment import (
    FrameworkControllerConfig,
    LocalConfig,
    RemoteConfig,
    RemoteMachineConfig,
)
from nni.experiment.config.pool_file import PoolFile
from nni.experiment.pool_calls import pool_to_proto
from nni_wire.values import from_value


def test_message_has_platforms_with_secret_paths_and_limits() -> None:
    machine = RemoteMachineConfig(host="box", user="ann", password="hush")
    remote = RemoteConfig(machine_list=[machine], slots=4)
    file = PoolFile(
        name="gpus",
        training_service=[LocalConfig(), remote],
        slots=2,
        max_agents=3,
        idle_time="5s",
        max_agent_time="1.5h",
        max_cost=9,
        cost_per_agent_hour=2,
    )

    message = pool_to_proto(file)

    assert [one.platform for one in message.platforms] == ["local", "remote"]
    local, elsewhere = (from_value(one.options) for one in message.platforms)
    assert (local["slots"], elsewhere["slots"]) == (2, 4)
    assert list(message.platforms[1].secret_paths) == ["machineList[0].password"]
    limits = message.limits
    assert (limits.min_agents, limits.max_agents, limits.idle.seconds) == (0, 3, 5)
    assert (limits.max_agent_time.seconds, limits.max_cost, limits.cost_per_agent_hour) == (
        5400,
        9.0,
        2.0,
    )


def test_limits_that_are_left_out_are_unset() -> None:
    limits = pool_to_proto(PoolFile(name="hands")).limits

    assert not limits.HasField("idle")
    assert not limits.HasField("max_agent_time")
    assert (limits.min_agents, limits.max_agents, limits.max_cost) == (0, 0, 0.0)


def test_message_has_the_content_of_the_files_that_a_platform_names(tmp_path: Path) -> None:
    template = tmp_path / "template.yml"
    template.write_text("kind: Framework\n")
    section = FrameworkControllerConfig(config_path=template)

    (platform,) = pool_to_proto(PoolFile(name="gpus", training_service=section)).platforms

    assert from_value(platform.options)["framework"] == {"kind": "Framework"}


def test_client_is_imported_without_the_modules_of_the_configuration() -> None:
    heavy = ("http.client", "nni.experiment.config", "nni.experiment.conversion", "nni.hpo", "yaml")
    program = (
        "import sys, nni.experiment.client;"
        f"print([name for name in {heavy} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
