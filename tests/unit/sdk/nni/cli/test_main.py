from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

import nni
from nni.cli import service_start
from nni.cli.main import DONE, FAILED, REFUSED, main
from nni.version import __version__

COMMANDS = [
    "create", "resume", "view", "stop", "update", "update searchspace", "update concurrency",
    "update duration", "update trialnum", "trial", "trial ls", "trial kill", "trial add",
    "trial why",
    "experiment", "experiment show", "experiment status", "experiment list", "experiment delete",
    "experiment export", "experiment import", "top", "log", "log stdout", "log stderr",
    "log trial", "config", "config show", "config convert", "webui", "webui url",
    "runner", "runner list", "runner show", "runner drain",
    "token", "token create", "token ls", "token rm",
    "ss_gen", "up", "down", "doctor",
]  # fmt: skip


REFERENCE = Path(__file__).parents[5] / "docs" / "nnictl.md"
GROUPS = {command.rpartition(" ")[0] for command in COMMANDS}


@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in GROUPS])
def test_reference_has_every_command(command: str) -> None:
    assert f"| `nnictl {command}" in REFERENCE.read_text("utf-8")


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NNI_HOME", str(tmp_path / "nni"))


@pytest.mark.claim("platform", 57)
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    assert "Usage:" in capsys.readouterr().out


def test_reader_that_has_gone_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(service_start, "start_services", fail)

    assert main(["up"]) == FAILED
    assert capsys.readouterr().err == ""


@pytest.mark.claim("platform", 42)
@pytest.mark.parametrize("flag", ["-v", "--version"])
def test_version_is_that_of_the_library(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag]) == 0
    assert capsys.readouterr().out == f"{nni.__version__}\n" == f"{__version__}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["craete"], "Did you mean 'create'?"),
        (["create", "--confg", "c"], "--config"),
        (["create"], "--config"),
        (["trial", "kil"], "Did you mean 'kill'?"),
        (["statsu"], "Did you mean nnictl experiment status or nnictl compress status?"),
        (["trial", "explian"], "See: nnictl trial --help"),
        (["update", "concurrency", "-v", "0"], "greater than or equal to 1"),
        (["update", "duration", "-v", "5w"], "--value must be a number followed by"),
        (["experiment", "export", "-f", "x", "--type", "xml"], "xml"),
        (["create", "-c", "c", "-p", "70000"], "equal to 65535, got '70000'"),
        (["up", "--port", "abc"], "got 'abc'"),
        (["create", "-c", "nope.yml"], "must name an existing file"),
        (["trial", "ls", "--head", "1", "--tail", "1"], "exclude each other"),
        (["trial", "add", "--parameters", "{"], "--parameters must be JSON"),
        (["trial", "add", "--parameters", '{"x": "\\ud800"}'], "x must be text in UTF-8"),
        (["experiment", "show", "a\udcff"], "argument 3 must be text in UTF-8, without half"),
    ],
)
def test_wrong_usage_is_refused_in_one_message(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("ERROR: ")
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    "words", [["stop"], ["stop", "abc"], ["experiment", "show"], ["trial", "ls"], ["webui", "url"]]
)
def test_nothing_running_is_an_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    assert "no experiment running" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["down"], ["stop", "--all"], ["experiment", "list"], ["top"]])
def test_nothing_to_do_is_no_error(words: list[str]) -> None:
    assert main(words) == 0


def test_empty_list_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "list", "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('experimentName: "\\ud800"', "experimentName"),
        ('trialCommand: "echo \\udfff"', "trialCommand"),
        ('searchSpace: {x: {_type: choice, _value: [1, "\\ud800"]}}', "searchSpace.x._value[1]"),
        ('tuner: {name: TPE, classArgs: {"a\\ud800": 1}}', "tuner.classArgs.a\\ud800"),
    ],
)
def test_half_of_a_surrogate_pair_in_a_configuration_is_refused(
    line: str, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.yml").write_text(line)

    assert main(["create", "-c", str(tmp_path / "c.yml")]) == 2

    assert f"c.yml: {place} must be text in UTF-8" in capsys.readouterr().err
    assert not (tmp_path / "nni").exists()


def test_refused_configuration_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.yml").write_text("trialCommand: x\ntrialConcurrency: 0\n")

    assert main(["create", "-c", str(tmp_path / "c.yml")]) == 2

    assert "trialConcurrency must be greater than or equal to 1" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["c.yml"]


def test_nothing_but_the_tree_of_commands_is_imported_for_help() -> None:
    script = (
        "import sys; from nni.cli.main import main; main(['--help']);"
        "print([name for name in ('grpc', 'pydantic', 'numpy', 'nni_proto', 'yaml')"
        " if name in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["tensorboard", "start"], "tensorboard --logdir"),
        (["hello"], "nnictl create"),
        (["jupyter-extension", "install"], "nnictl webui url"),
        (["trial", "codegen"], "nni.nas"),
        (["update", "debug"], "--debug"),
    ],
)
def test_command_of_nni_that_is_gone_is_refused_with_a_remedy(
    words: list[str], remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == REFUSED

    shown = capsys.readouterr().err
    assert "does not exist" in shown
    assert remedy in shown


def test_old_name_of_algo_works_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["package", "list"]) == DONE

    shown = capsys.readouterr()
    assert "use `nnictl algo`" in shown.err
    assert "TPE" in shown.out


def run_nnictl(words: str, redirection: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose output a shell redirects."""
    line = f'"$0" -m nni.cli.main {words} {redirection}'
    return subprocess.run(
        ["bash", "-c", line, sys.executable], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        (">&-", 0, ""),
        (">/dev/full", 1, "ERROR: the output cannot be written: No space left on device"),
        ("> >(exec true)", None, ""),
    ],
)
def test_output_that_cannot_be_written_is_no_defect(
    redirection: str, code: int | None, message: str
) -> None:
    done = run_nnictl("experiment list --json", redirection)

    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == bool(message)
    assert code is None or done.returncode == code
