import json
import socket
from contextlib import closing

import pytest

from nni.cli.main import DONE, FAILED, main
from nni.cli.runner import join_command
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.runner.v1 import pool_pb2, runner_service_pb2
from tests.support.in_memory_manager import InMemoryManager


@pytest.fixture
def agents(manager: InMemoryManager) -> InMemoryManager:
    trial = runner_service_pb2.RunnerTrial(
        experiment_id="abcd1234", trial_id="aBcDe", attempt=2, warm=True, waiting_for="a GPU"
    )
    manager.agents = [
        pb.RunnerSummary(runner_id="box-1", pool="local", host_name="box", trials=[trial]),
        pb.RunnerSummary(runner_id="box-2", pool="gpu", gpu_count=4, draining=True),
    ]
    return manager


def test_list_has_a_line_per_agent(
    agents: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runner", "list"]) == DONE

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "box-" in line] == ["box-1", "box-2"]


def test_show_prints_the_trials_of_an_agent(
    agents: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runner", "show", "box-1"]) == DONE
    shown = capsys.readouterr().out
    assert "pool: local" in shown
    assert "aBcDe" in shown
    assert "a GPU" in shown

    assert main(["runner", "show", "box-2", "--json"]) == DONE
    record = json.loads(capsys.readouterr().out)
    assert (record["gpuCount"], record["draining"], record["trials"]) == (4, True, [])


def test_drain_names_the_agent_by_the_start_of_its_id(agents: InMemoryManager) -> None:
    agents.agents = agents.agents[:1]

    assert main(["runner", "drain", "box"]) == DONE

    assert agents.drained == ["box-1"]


@pytest.mark.parametrize("word", ["box", "nope"])
def test_ambiguous_or_unknown_id_lists_the_known_ones(
    word: str, agents: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runner", "drain", word]) == FAILED

    assert "known are: box-1, box-2" in capsys.readouterr().err
    assert agents.drained == []


def test_list_shows_agents_that_a_platform_is_asked_for(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.agents = [
        pb.RunnerSummary(
            runner_id="nni-abcdefgh-exp-a-1",
            pool="exp-a",
            platform="slurm",
            state=pool_pb2.POOL_AGENT_STATE_PENDING,
            slots=4,
            reason="Resources",
        )
    ]

    assert main(["runner", "list"]) == DONE
    line = capsys.readouterr().out.splitlines()[-1]

    assert line.split() == [
        "nni-abcdefgh-exp-a-1",
        "exp-a",
        "slurm",
        "PENDING",
        "4",
        "0",
        "0",
        "Resources",
    ]


def test_invitation_prints_the_word_and_the_line_to_run(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runner", "invite", "--pool", "desks", "--uses", "3", "--valid", "30m"]) == DONE

    [request] = manager.invitations.made
    assert (request.pool, request.use_limit, request.validity.seconds) == ("desks", 3, 1800)
    printed = capsys.readouterr()
    assert "nni1.secret.fingerprint" in printed.out
    both = printed.out + printed.err
    assert "nnictl runner join https://10.0.0.1:8081 --pool desks" in both
    assert both.count("nni1.secret.fingerprint") == 1


def test_validity_that_is_no_duration_is_refused(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runner", "invite", "--pool", "desks", "--valid", "soon"]) != DONE

    assert "10m" in capsys.readouterr().err
    assert manager.invitations.made == []


@pytest.mark.parametrize("options", [("--uses", "0"), ("--uses", "-1"), ("--valid", "31d")])
def test_invitation_out_of_range_is_refused(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str], options: tuple[str, str]
) -> None:
    assert main(["runner", "invite", "--pool", "desks", *options]) != DONE

    assert options[0] in capsys.readouterr().err
    assert manager.invitations.made == []


def test_invitations_are_listed_and_revoked(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runner", "invitations", "--pool", "desks", "--json"]) == DONE
    assert json.loads(capsys.readouterr().out)[0]["uses"] == 3
    assert main(["runner", "invitations", "--pool", "desks"]) == DONE
    assert "ab12" in capsys.readouterr().out

    assert main(["runner", "revoke", "ab12", "--pool", "desks"]) == DONE

    assert [list(one.ids) for one in manager.invitations.revoked] == [["ab12"]]


def test_command_of_an_agent_has_no_word() -> None:
    command = join_command("https://h:1", "desks", "-", 2, "0,1", "/agents")

    assert command[1:] == [
        *("-P", "-m", "svc_trial_runner.joining", "https://h:1", "--pool", "desks"),
        *("--word-file", "-", "--slots", "2", "--gpu-indices", "0,1", "--folder", "/agents"),
    ]


def test_word_of_an_invitation_is_alone_on_stdout(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runner", "invite", "--pool", "desks"]) == DONE

    printed = capsys.readouterr()
    assert printed.out == "nni1.secret.fingerprint\n"
    assert printed.err.startswith("INFO: Run on the other machine")


def test_list_shows_the_open_front_below_the_agents(
    agents: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as front:
        agents.invitations.front.address = f"192.0.2.7:{front.getsockname()[1]}"
        agents.invitations.front.authority_sha256 = "ab12"

        assert main(["runner", "list"]) == DONE

    out = capsys.readouterr().out
    assert f"open at {agents.invitations.front.address}, authority with SHA-256 ab12" in out
    assert "box-1" in out


def test_closed_front_is_not_listed(
    agents: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runner", "list"]) == DONE

    assert "front" not in capsys.readouterr().out
