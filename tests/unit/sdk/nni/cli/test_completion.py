"""Words that shells complete, by the protocol of the scripts that `nnictl completion` prints."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nni.cli import completion
from nni.cli.completion import offered
from nni.cli.main import DONE, REFUSED, main
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from tests.support.endpoint_files import SUPERVISOR, process_spawner, write_endpoint
from tests.support.in_memory_manager import InMemoryManager

EXPERIMENTS = "/api/v1/nni/experiments-info"


@pytest.fixture
def running(manager: InMemoryManager, monkeypatch: pytest.MonkeyPatch) -> InMemoryManager:
    """Fill a manager, which may take longer to answer than the second that a key is worth."""
    monkeypatch.setattr(completion, "_TIMEOUT_S", 60.0)
    manager.documents[EXPERIMENTS] = [
        {"id": "aaaa1111", "status": "STOPPED"},
        {"id": "abcd1234", "status": "RUNNING"},
        {"id": "$(touch x)", "status": "STOPPED"},
    ]
    manager.documents["/api/v1/nni/experiments/abcd1234/trial-jobs"] = [
        {"trialJobId": "tRiA1", "status": "RUNNING"},
        {"trialJobId": "oTh3r", "status": "SUCCEEDED"},
    ]
    manager.agents = [pb.RunnerSummary(runner_id="box-1", pool="gpus")]
    manager.pools.add("gpus", "slurm")
    return manager


def completed(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Return what bash is offered at the end of a line."""
    monkeypatch.setenv("_NNICTL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    with pytest.raises(SystemExit):
        main([])
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nnictl stop ", ["abcd1234", "aaaa1111"]),
        ("nnictl experiment show ab", ["abcd1234"]),
        ("nnictl trial kill --trial_id ", ["tRiA1", "oTh3r"]),
        ("nnictl trial kill abcd1234 -T t", ["tRiA1"]),
        ("nnictl trial kill nope1234 -T ", []),
        ("nnictl runner drain b", ["box-1"]),
        ("nnictl pool show ", ["gpus"]),
        ("nnictl experiment exp", ["export"]),
    ],
)
def test_shell_completes_commands_and_ids(
    line: str,
    words: list[str],
    running: InMemoryManager,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert completed(line, monkeypatch, capsys) == words


def test_without_services_nothing_is_offered_or_started(
    private_home: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed("nnictl stop ", monkeypatch, capsys) == []
    assert not (private_home / "nni").exists()


@pytest.mark.timeout(25)  # a call has 30 s by itself, a completion one
def test_services_that_do_not_answer_offer_nothing(
    private_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = private_home / "nni"
    home.mkdir()
    with process_spawner(home) as spawn, socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        write_endpoint(home, spawn(SUPERVISOR).pid, grpc=address)

        assert completed("nnictl pool show ", monkeypatch, capsys) == []


def test_words_that_a_shell_could_evaluate_are_left_out() -> None:
    words = [("ab", "x; rm"), ("a`b", ""), ("a b", ""), ("-a", "")]

    assert offered(words, "") == [("ab", "")]


def test_offered_words_are_few() -> None:
    assert len(offered([(f"w{number}", "") for number in range(1000)], "w")) == 200


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_names_the_program(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == DONE

    script = capsys.readouterr().out
    assert f"_NNICTL_COMPLETE=complete_{shell}" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_other_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == REFUSED

    assert "tcsh" in capsys.readouterr().err
