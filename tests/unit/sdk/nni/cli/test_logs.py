import io
import json
from pathlib import Path

import pytest

from nni.cli.logs import cut, log_path, write_pieces
from nni.cli.main import DONE, FAILED, REFUSED, main
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.trial.v1 import trial_pb2
from tests.support.in_memory_manager import InMemoryManager

LINES = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [(None, None, LINES), (2, None, ["a", "b"]), (None, 2, ["b", "c"]), (9, None, LINES)],
)
def test_head_and_tail_cut_lines(head: int | None, tail: int | None, expected: list[str]) -> None:
    assert cut(LINES, head, tail) == expected


def test_stdout_is_that_of_nnictl(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(manager.add_experiment("abcd1234").directory) / "log"
    folder.mkdir()
    (folder / "nnictl_stdout.log").write_text("one\ntwo\n")

    assert main(["log", "stdout", "-t", "1"]) == DONE
    assert capsys.readouterr().out == "two\n"
    assert main(["log", "stdout", "--path"]) == DONE
    assert capsys.readouterr().out == f"{folder}/nnictl_stdout.log\n"


def test_log_of_an_experiment_that_nnictl_did_not_start_is_an_error(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")

    assert main(["log", "stderr"]) == FAILED

    assert "was not started by nnictl" in capsys.readouterr().err


def test_output_of_another_machine_has_a_command_that_prints_it(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.add_trial("abcd1234", "aBcDe").started_at.GetCurrentTime()

    assert main(["log", "trial", "--trial_id", "aBcDe"]) == DONE

    assert "nnictl log trial abcd1234 --trial_id aBcDe --follow" in capsys.readouterr().err


def test_trial_prints_where_trials_write(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    trial = manager.add_trial("abcd1234", "aBcDe")

    assert main(["log", "trial", "--trial_id", "aBcDe"]) == DONE
    assert capsys.readouterr().out == f"trial log path: {trial.directory}/trial.log\n"
    assert main(["log", "trial", "--json"]) == DONE
    assert json.loads(capsys.readouterr().out) == [
        {"trialJobId": "aBcDe", "logPath": f"{trial.directory}/trial.log"}
    ]


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("table", "Id     LogPath\naBcDe  "),
        ("wide", "trialJobId  logPath\naBcDe       "),
        ("csv", "trialJobId,logPath\naBcDe,"),
        ("yaml", "- trialJobId: aBcDe\n  logPath: "),
    ],
)
def test_paths_of_all_trials_are_printed_in_the_chosen_form(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str], form: str, start: str
) -> None:
    manager.add_experiment("abcd1234")
    trial = manager.add_trial("abcd1234", "aBcDe")

    assert main(["log", "trial", "--output", form]) == DONE

    assert capsys.readouterr().out == f"{start}{trial.directory}/trial.log\n"


def test_follow_refuses_a_form(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", "trial", "-T", "aBcDe", "--follow", "--output", "csv"]) == REFUSED

    assert "leave out --output" in capsys.readouterr().err


def test_follow_prints_the_chosen_stream(
    manager: InMemoryManager, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    manager.add_experiment("abcd1234")
    manager.add_trial("abcd1234", "aBcDe")
    manager.logs["aBcDe", pb.LOG_SOURCE_TRIAL_STDERR] = b"epoch 1\n\xff"

    assert main(["log", "trial", "-T", "aBcDe", "--follow", "-s", "stderr"]) == DONE

    assert capfdbinary.readouterr().out == b"epoch 1\n\xff"


@pytest.mark.parametrize(
    ("words", "rule"),
    [(["--follow"], "--trial_id"), (["--follow", "-T", "a", "-s", "log"], "stdout, stderr")],
)
def test_follow_without_trial_or_with_a_wrong_stream_is_refused(
    words: list[str], rule: str, manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", "trial", *words]) == REFUSED

    assert rule in capsys.readouterr().err


def test_trial_without_a_folder_has_no_log_path() -> None:
    assert log_path(trial_pb2.Trial(id="aBcDe")) == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_whole_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    output = "10%|█▏ |\r".encode()

    write_pieces([output[:5], output[5:]])

    assert terminal.getvalue() == output.decode()
