"""Classes of modules that misbehave at import, checked in a child process."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from nni.hpo.registry.class_check import check_class
from tests.support.wait import until

TUNER = "from nni.hpo import Tuner\nclass Mine(Tuner):\n    pass\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))


def write(folder: Path, content: str) -> None:
    (folder / "hostile.py").write_text(content)


@pytest.mark.parametrize(
    "content",
    [
        TUNER,
        f"print('\\x1b[31m' * 100_000)\n{TUNER}",
        f"import os; os.closerange(0, 3)\n{TUNER}",
        f"import os; os.chdir('/')\n{TUNER}",
        f"import threading as t, time; t.Thread(target=time.sleep, args=[600]).start()\n{TUNER}",
    ],
)
def test_class_of_a_module_that_does_more_than_define_it_is_one(
    tmp_path: Path, content: str, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, content)

    check_class("hostile.Mine", "tuner", "className")

    assert "hostile" not in sys.modules
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("import sys; sys.exit(0)", "it raised SystemExit: 0"),
        ("import os; os._exit(0)", "must not end the interpreter; it ended with status 0"),
        ("import os; os.kill(os.getpid(), 9)", "it ended with status -9"),
        ("import os; os.closerange(3, 4096)\n" + TUNER, "it ended with status 1"),
        ("raise KeyboardInterrupt", "it raised KeyboardInterrupt"),
        ("raise BaseException('x' * 100_000)", "it raised BaseException: x{500}$"),
        ("def (", "it raised SyntaxError"),
        ("def __getattr__(name): raise OSError(name)", "it raised OSError: __path__|OSError: Mine"),
        ("raise AttributeError('theirs')", "it raised AttributeError: theirs"),
        ("import nowhere", "'hostile' cannot be imported .No module named 'nowhere'"),
        ("Mine = 1", "hostile.Mine must be a subclass of Tuner"),
    ],
)
def test_module_that_cannot_be_imported_is_refused_with_the_reason(
    tmp_path: Path, content: str, message: str
) -> None:
    write(tmp_path, content)

    with pytest.raises(ValueError, match=message):
        check_class("hostile.Mine", "tuner", "className")


def test_import_that_hangs_is_ended_with_all_that_it_has_forked(tmp_path: Path) -> None:
    """The named pipe is at its end once child and grandchild, which write to it, are gone."""
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    write(
        tmp_path,
        f"import os, time\nfile = open({str(tmp_path / 'alive')!r}, 'w')\n"
        "os.fork()\ntime.sleep(600)\n",
    )

    def has_no_writer() -> bool:
        with suppress(BlockingIOError):
            return os.read(alive, 1) == b""
        return False

    try:
        with pytest.raises(ValueError, match=r"className: the import of .* must end within 5 s"):
            check_class("hostile.Mine", "tuner", "className", 5.0)

        until(has_no_writer, 30.0)
    finally:
        os.close(alive)


def test_process_that_outlives_the_import_is_not_waited_for(tmp_path: Path) -> None:
    """It leaves the group of the child and holds the pipe of the answer, which it never closes."""
    write(
        tmp_path,
        "import os, subprocess\n"
        "left = subprocess.Popen(['sleep', '600'], close_fds=False, start_new_session=True)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(left.pid))\nos._exit(3)\n",
    )

    try:
        with pytest.raises(ValueError, match="it ended with status 3"):
            check_class("hostile.Mine", "tuner", "className")
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_import_is_ended_by_an_alarm_also_where_the_parent_is_gone(tmp_path: Path) -> None:
    write(tmp_path, "import signal\nraise OSError(f'{signal.alarm(0)} s left')")

    with pytest.raises(ValueError, match=r"OSError: (1[01]\d|120) s left"):
        check_class("hostile.Mine", "tuner", "className")
