"""Import of classes in a child process; scripted interpreters stand in for the client's."""

from pathlib import Path

import pytest

from svc_dispatcher.adapters.child_class_checker import ChildClassChecker
from svc_dispatcher.ports import ClassChoice

OWN = ClassChoice("tuner", class_name="m.T", code_directory="/code")
NAMED = ClassChoice("tuner", name="TPE")


class Interpreter:
    """Executable that records its calls and prints a fixed answer."""

    def __init__(self, folder: Path, body: str) -> None:
        self.path = folder / "interpreter"
        self._calls = folder / "calls"
        self.path.write_text(f'#!/bin/sh\necho "$@ $NNI_TOKEN" >>{self._calls}\ncat >&2\n{body}\n')
        self.path.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines()


def checker(timeout_s: float = 60.0) -> ChildClassChecker:
    return ChildClassChecker({"PATH": "/usr/bin:/bin", "NNI_TOKEN": "secret"}, timeout_s)


async def test_class_of_the_user_is_imported_at_each_check_without_secrets(tmp_path: Path) -> None:
    interpreter = Interpreter(tmp_path, """echo '{"ok": true}'""")
    checking = checker()

    answers = [await checking.check(OWN, str(interpreter.path)) for _ in range(2)]

    assert answers == ["", ""]
    assert interpreter.calls == ["-m nni.hpo.host --check "] * 2


async def test_registered_class_is_imported_once_per_interpreter(tmp_path: Path) -> None:
    interpreter = Interpreter(tmp_path, """echo '{"ok": true}'""")
    checking = checker()

    for _ in range(3):
        assert await checking.check(NAMED, str(interpreter.path)) == ""

    assert len(interpreter.calls) == 1


async def test_registered_class_that_failed_is_tried_again(tmp_path: Path) -> None:
    interpreter = Interpreter(tmp_path, """echo '{"ok": false, "error": "no numpy"}'""")
    checking = checker()

    answers = [await checking.check(NAMED, str(interpreter.path)) for _ in range(2)]

    assert answers == ["no numpy", "no numpy"]
    assert len(interpreter.calls) == 2


async def test_class_of_the_library_itself_needs_no_process() -> None:
    assert await checker().check(ClassChoice("tuner", name="Random"), "") == ""


async def test_last_line_is_the_answer_whatever_the_import_prints(tmp_path: Path) -> None:
    interpreter = Interpreter(tmp_path, """echo hello; echo '{"ok": true}'""")

    assert await checker().check(OWN, str(interpreter.path)) == ""


async def test_missing_interpreter_is_a_problem() -> None:
    problem = await checker().check(OWN, "/no/such/python")

    assert problem.startswith("the interpreter '/no/such/python' cannot be started")


async def test_process_without_an_answer_is_reported_with_its_stderr(tmp_path: Path) -> None:
    interpreter = Interpreter(tmp_path, "echo 'Segmentation fault' >&2; exit 7")

    problem = await checker().check(OWN, str(interpreter.path))

    assert problem.startswith("the process that imported it ended with code 7: ")
    assert problem.endswith("Segmentation fault")


@pytest.mark.parametrize("body", ["exec sleep 60"])
async def test_import_beyond_the_time_limit_is_killed(tmp_path: Path, body: str) -> None:
    interpreter = Interpreter(tmp_path, body)

    assert (
        await checker(0.1).check(OWN, str(interpreter.path)) == "its import took longer than 0.1 s"
    )
