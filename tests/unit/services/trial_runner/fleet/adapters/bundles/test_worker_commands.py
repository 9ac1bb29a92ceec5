"""Command lines of a worker's program, run by real shells."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.bundles.worker_commands import (
    CommandResult,
    WorkerCommands,
    WorkerFailure,
    bundle_digest,
    read_report,
    worker_program,
)
from svc_trial_runner.fleet.adapters.bundles.worker_facts import read_facts
from svc_trial_runner.fleet.adapters.bundles.worker_folders import WorkerFolders
from tests.support.worker_shell import (
    DIGEST,
    digest_of,
    packed,
    run_command,
    stand_in_bundle,
    wait_for_output,
)

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "fish")
CONTENT = packed({"run.py": b"pass"})


@pytest.mark.parametrize("shell", [name for name in SHELLS if shutil.which(name)])
def test_shell_of_a_user_runs_the_line(tmp_path: Path, shell: str) -> None:
    commands = WorkerCommands(str(tmp_path / "a folder's"))

    facts = read_facts(run_command(commands.probe(), (shell, "-c")))

    assert facts.folder == str(tmp_path / "a folder's")
    assert facts.python >= (3, 11)


@pytest.mark.parametrize("login", [False, True])
def test_line_has_nothing_that_a_shell_treats_on_its_own(login: bool) -> None:
    commands = WorkerCommands("~/.nni", "~/python/bin")
    command = commands.start("one", DIGEST, b"", login=login)

    assert not {"!", "\n", "\\"} & {*commands.probe().line}

    assert not {"!", "\n", "\\"} & {*command.line}


def test_folder_below_the_home_is_found(tmp_path: Path) -> None:
    line = WorkerCommands("~/.nni").probe()

    done = subprocess.run(
        ["sh", "-c", line.line],
        input=b"".join(line.chunks()),
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        check=True,
    )

    assert read_facts(CommandResult(done.stdout)).folder == str(tmp_path / ".nni")


def test_bundle_is_sent_and_unpacked(tmp_path: Path) -> None:
    bundle = tmp_path / f"nni-agent-{digest_of(CONTENT)}.tar.gz"
    bundle.write_bytes(CONTENT)
    commands = WorkerCommands(str(tmp_path / "nni"))

    assert read_report(run_command(commands.unpack(bundle))) == {"unpacked": True}
    assert read_report(run_command(commands.unpack(bundle))) == {"unpacked": False}
    assert read_facts(run_command(commands.probe())).bundles == (bundle_digest(bundle),)


def test_bundle_that_is_longer_than_a_limit_of_the_disk_is_reported(tmp_path: Path) -> None:
    bundle = tmp_path / f"nni-agent-{digest_of(CONTENT)}.tar.gz"
    bundle.write_bytes(os.urandom(64 * 1024))
    commands = WorkerCommands(str(tmp_path / "nni"))

    with pytest.raises(WorkerFailure) as caught:
        read_report(run_command(commands.unpack(bundle), ("sh", "-c", 'ulimit -f 8; eval "$0"')))

    assert caught.value.code == "disk_full"
    assert "free space" in caught.value.remedy


def test_agent_is_started_listed_and_removed(tmp_path: Path) -> None:
    folders = WorkerFolders(str(tmp_path / "nni"))
    folders.open()
    stand_in_bundle(folders.base)
    commands = WorkerCommands(str(folders.base))

    started = read_report(run_command(commands.start("one", DIGEST, b'{"say": "hello"}')))
    wait_for_output(folders, "one", "hello")
    listed = read_report(run_command(commands.status("o")))["agents"]
    log = read_report(run_command(commands.log("one")))["log"]
    stopped = read_report(run_command(commands.stop(["one"])))["agents"]
    read_report(run_command(commands.remove(["one"])))

    assert started["started"]
    assert [(agent["name"], agent["state"]) for agent in listed] == [("one", "running")]
    assert log == "hello\n"
    assert stopped[0]["state"] == "ended"
    read_report(run_command(commands.clean("", bundles=True)))
    assert not folders.base.exists()


def test_bundles_stay_when_agents_are_cleaned_unless_they_are_to_go(tmp_path: Path) -> None:
    folders = WorkerFolders(str(tmp_path / "nni"))
    folders.open()
    stand_in_bundle(folders.base)
    commands = WorkerCommands(str(folders.base))

    read_report(run_command(commands.clean("")))
    bundles = [path.name for path in folders.bundles.iterdir()]
    read_report(run_command(commands.clean("", bundles=True)))

    assert bundles == [DIGEST]
    assert not folders.bundles.exists()


def test_profile_of_the_login_shell_neither_reads_nor_hides_anything(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".profile").write_text("echo welcome; cat; export FROM_PROFILE=yes\n")
    folders = WorkerFolders(str(home / ".nni"))
    folders.open()
    stand_in_bundle(folders.base)
    command = WorkerCommands("~/.nni").start("one", DIGEST, b'{"say": "as asked"}', login=True)

    done = subprocess.run(
        ["sh", "-c", command.line],
        input=b"".join(command.chunks()),
        env={"PATH": os.environ["PATH"], "HOME": str(home), "SHELL": "/bin/sh"},
        capture_output=True,
        check=False,
    )

    report = read_report(CommandResult(done.stdout, done.stderr, done.returncode))
    wait_for_output(folders, "one", "as asked")
    assert b"FROM_PROFILE=yes" in Path(f"/proc/{report['pid']}/environ").read_bytes()
    read_report(run_command(WorkerCommands(str(folders.base)).clean("", bundles=True)))


def test_line_of_a_script_runs_an_agent_until_it_ends(tmp_path: Path) -> None:
    folders = WorkerFolders(str(tmp_path / "nni"))
    folders.open()
    stand_in_bundle(folders.base)
    commands = WorkerCommands(str(folders.base))
    settings = b'{"say": "from a script", "exit": 5}'
    read_report(run_command(commands.write_settings("job-7", DIGEST, settings)))

    line = commands.run_line('"job-$TASK"', DIGEST)
    done = subprocess.run(["sh", "-c", f"TASK=7; {line}"], capture_output=True, check=False)

    assert done.returncode == 5
    (agent,) = read_report(run_command(commands.status("job-7")))["agents"]
    assert (agent["state"], agent["reason"]) == ("ended", "from a script")


def old_pythons(folder: Path, version: str) -> None:
    """Put an interpreter that is too old first on a PATH that has nothing else of Python."""
    for tool in ("sh", "cat", "tail"):
        (folder / tool).symlink_to(shutil.which(tool) or "")
    (folder / "bash").write_text('#!/bin/sh\nshift\nexec /bin/sh "$@"\n')
    (folder / "bash").chmod(0o755)
    script = folder / "python3"
    script.write_text(f'#!/bin/sh\n[ "$1" = -V ] && {{ echo Python {version}; exit 0; }}\nexit 1\n')
    script.chmod(0o755)


def test_machine_whose_python_is_too_old_is_refused_with_a_remedy(tmp_path: Path) -> None:
    old_pythons(tmp_path, "3.9.2")
    command = WorkerCommands(str(tmp_path / "nni")).probe()

    done = subprocess.run(
        ["/bin/sh", "-c", command.line],
        input=b"".join(command.chunks()),
        # A login shell that has no other PATH, whatever the profile of this machine sets.
        env={"PATH": str(tmp_path), "HOME": str(tmp_path), "SHELL": str(tmp_path / "bash")},
        capture_output=True,
        check=False,
    )

    with pytest.raises(WorkerFailure, match=r"no Python >= 3\.11.*3\.9\.2") as caught:
        read_report(CommandResult(done.stdout, done.stderr, done.returncode), "lab7")
    assert caught.value.code == "no_python"
    assert caught.value.permanent
    assert "pythonPath" in caught.value.remedy


def test_python_without_a_part_of_its_library_is_refused_with_a_remedy(tmp_path: Path) -> None:
    hide = (
        "import importlib.util, sys\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == '_lzma' else found(name)\n"
    )

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{hide}exec(sys.stdin.buffer.read())"],
        input=WorkerCommands(str(tmp_path / "nni")).probe().program,
        capture_output=True,
        check=False,
    )

    with pytest.raises(WorkerFailure, match="was built without _lzma") as caught:
        read_report(CommandResult(done.stdout, done.stderr, done.returncode))
    assert caught.value.code == "wrong_python"
    assert "pythonPath" in caught.value.remedy


def test_report_is_found_behind_other_output() -> None:
    output = b'Welcome!\nNNI-WORKER {"agents": []}\nbye\n'

    assert read_report(CommandResult(output)) == {"agents": []}


def test_command_that_did_not_run_says_what_the_shell_said() -> None:
    result = CommandResult(b"", b"sh: disk quota exceeded\n", 2)

    with pytest.raises(WorkerFailure, match="a command on lab7 ended with 2: sh: disk quota"):
        read_report(result, "lab7")


def test_program_is_small_and_the_same_each_time() -> None:
    assert worker_program() == worker_program()
    assert len(worker_program()) < 100_000


def test_agents_have_ten_seconds_to_end_unless_another_time_is_given() -> None:
    commands = WorkerCommands("/nni", interpreter="/usr/bin/python3")

    for line in (commands.stop(["a"]), commands.remove(["a"]), commands.clean("a-")):
        assert "--grace 10.0" in line.line
    assert "--grace 3.0" in commands.stop(["a"], 3.0).line
    assert "--bundles" not in commands.clean("a-").line


def test_line_of_a_script_has_the_known_interpreter_or_the_usual_one() -> None:
    commands = WorkerCommands("/a b", "/opt/py")

    assert commands.run_line("x", "d1").startswith("exec python3 -I -S '/a b'/bundles/d1/run.py ")
    known = commands.with_interpreter("/opt/py/python3")
    assert known.run_line("x", "d1").startswith("exec /opt/py/python3 -I -S ")
    assert known.python_path == "/opt/py"


def test_home_itself_may_be_the_folder() -> None:
    assert '--folder "$HOME" ' in WorkerCommands("~", interpreter="p").run_line("x", "d1")


def test_machine_without_any_python_names_none() -> None:
    with pytest.raises(WorkerFailure, match=r"has no Python >= 3\.11 on its PATH$"):
        read_report(CommandResult(b"\n", b"", 97), "lab7")


def test_long_words_of_a_machine_are_shortened_to_500_characters() -> None:
    with pytest.raises(WorkerFailure) as failed:
        read_report(CommandResult(b"", b"a" * 600 + b"b" * 500, 1), "lab7")
    with pytest.raises(WorkerFailure) as old:
        read_report(CommandResult(b"c" * 500 + b"d" * 600, b"", 97), "lab7")

    assert failed.value.message == f"a command on lab7 ended with 1: {'b' * 500}"
    assert not failed.value.permanent
    assert old.value.message.endswith(f"(found: {'c' * 500})")


def test_output_is_shown_if_there_are_no_errors() -> None:
    with pytest.raises(WorkerFailure, match="ended with None: it was cut"):
        read_report(CommandResult(b"it was cut\n"))


def test_last_report_of_a_command_is_read() -> None:
    output = b'NNI-WORKER {"agents": [1]}\nNNI-WORKER {"agents": []}\n'

    assert read_report(CommandResult(output)) == {"agents": []}


@pytest.mark.parametrize("permanent", [True, False])
def test_error_of_a_command_is_read(*, permanent: bool) -> None:
    error = {"code": "odd", "message": "m", "remedy": "r", "permanent": permanent}
    line = f"NNI-WORKER {json.dumps({'error': error})}\n"

    with pytest.raises(WorkerFailure) as caught:
        read_report(CommandResult(line.encode(), b"", 1))

    failure = caught.value
    assert (failure.code, failure.message, failure.remedy, failure.permanent) == (
        "odd", "m", "r", permanent
    )  # fmt: skip


def test_report_with_an_exit_status_is_a_report_all_the_same() -> None:
    assert read_report(CommandResult(b"NNI-WORKER {}\n", b"words", 97)) == {}


def test_pythons_that_are_too_old_are_listed() -> None:
    output = b"Python 3.9.2\n/usr/bin/python3\nPython 3.8.1\n/opt/python\n"

    with pytest.raises(WorkerFailure) as caught:
        read_report(CommandResult(output, b"", 97), "lab7")

    assert caught.value.message == (
        "lab7 has no Python >= 3.11 on its PATH"
        " (found: Python 3.9.2, /usr/bin/python3, Python 3.8.1, /opt/python)"
    )
    assert caught.value.remedy == (
        "install Python 3.11 or newer there, or set pythonPath to its folder"
    )


def bare_path(folder: Path, *others: str) -> str:
    """Return a PATH with nothing but the tools of the command line, and other programs."""
    folder.mkdir()
    for tool in ("sh", "cat", "tail", *others):
        (folder / tool).symlink_to(shutil.which(tool) or "")
    return str(folder)


def python_in(folder: Path) -> Path:
    """Put this Python into a folder under a name that the command line looks for."""
    folder.mkdir()
    program = folder / "python3.13"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return folder


def run_with(commands: WorkerCommands, **variables: str) -> CommandResult:
    command = commands.probe()
    done = subprocess.run(
        ["/bin/sh", "-c", command.line],
        input=b"".join(command.chunks()),
        env=variables,
        capture_output=True,
        check=False,
    )
    return CommandResult(done.stdout, done.stderr, done.returncode)


def test_python_of_the_given_folder_is_used(tmp_path: Path) -> None:
    python_in(tmp_path / "own python")
    path = bare_path(tmp_path / "bin")

    for folder in (str(tmp_path / "own python"), "~/own python"):
        commands = WorkerCommands(str(tmp_path / "nni"), folder)
        assert read_facts(run_with(commands, PATH=path, HOME=str(tmp_path))).cores >= 1


def test_python_of_the_login_environment_is_used_if_the_path_has_none(tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    path = bare_path(bin_folder)
    shell = bin_folder / "bash"  # its profile prints, and sets the PATH
    python = python_in(tmp_path / "python")
    shell.write_text(f'#!/bin/sh\nshift\necho hello\nPATH={python}:$PATH\nexec /bin/sh "$@"\n')
    shell.chmod(0o755)

    found = run_with(
        WorkerCommands(str(tmp_path / "nni")), PATH=path, HOME=str(tmp_path), SHELL=str(shell)
    )

    assert read_facts(found).folder == str(tmp_path / "nni")


def test_known_interpreter_is_used_without_a_search(tmp_path: Path) -> None:
    commands = WorkerCommands(str(tmp_path / "nni"), "/nowhere", sys.executable)
    path = bare_path(tmp_path / "bin")

    found = read_facts(run_with(commands, PATH=path, HOME=str(tmp_path)))

    assert found.interpreter == sys.executable


def test_files_of_a_command_are_private(tmp_path: Path) -> None:
    bundle = tmp_path / f"nni-agent-{digest_of(CONTENT)}.tar.gz"
    bundle.write_bytes(CONTENT)

    read_report(run_command(WorkerCommands(str(tmp_path / "nni")).unpack(bundle)))

    folder = tmp_path / "nni" / "bundles" / digest_of(CONTENT)
    assert {path.stat().st_mode & 0o077 for path in (folder, folder / "run.py")} == {0}


def test_stdin_of_a_command_is_the_program_and_then_the_payload(tmp_path: Path) -> None:
    content = b"a" * (256 * 1024) + b"b"
    bundle = tmp_path / "nni-agent-ab.tar.gz"
    bundle.write_bytes(content)
    commands = WorkerCommands()

    assert list(commands.probe().chunks()) == [worker_program()]
    assert list(commands.start("one", DIGEST, b"{}").chunks()) == [worker_program(), b"{}"]
    pieces = list(commands.unpack(bundle).chunks())
    assert (pieces[0], b"".join(pieces[1:])) == (worker_program(), content)
    assert max(map(len, pieces[1:])) == 256 * 1024


@pytest.mark.parametrize(
    ("name", "digest"),
    [("nni-agent-cp311-tag-key-12ab.tar.gz", "12ab"), ("x-1.tar.gz", "1"), ("ab.tar.gz", "ab")],
)
def test_digest_of_a_bundle_is_the_last_word_of_its_name(name: str, digest: str) -> None:
    assert bundle_digest(Path("/a-b", name)) == digest


def test_status_without_a_prefix_is_that_of_all_agents() -> None:
    commands = WorkerCommands("/nni", interpreter="/p")

    assert commands.status("a-").line.rstrip("'").endswith(" status a-")
    assert commands.status().line.rstrip("'").rstrip().endswith(" status")
