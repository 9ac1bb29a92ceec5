"""A script must not notice that it runs in a warm interpreter: the same script, warm and plain."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import nni
from tests.support.trial_agent import TrialAgent
from tests.support.warm_client import EVENT_TIMEOUT_S, Ended, WarmClient

SDK = str(Path(nni.__file__).parents[1])
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C.UTF-8"}
PROBE = """
    import io, json, os, random, resource, signal, sys
    facts = {
        "argv": sys.argv,
        "path": sys.path,
        "file": __file__,
        "name": __name__,
        "globals": sorted(globals()),
        "doc": __doc__,
        "loader": type(__loader__).__name__,
        "spec": __spec__,
        "builtins": type(__builtins__).__name__,
        "main": sys.modules["__main__"].__dict__ is globals(),
        "annotations": __annotations__,
        "environment": dict(os.environ),
        "cwd": os.getcwd(),
        "mask": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "handlers": {n: repr(signal.getsignal(n)).split(" at ")[0] for n in range(1, 32)},
        "wakeup": signal.set_wakeup_fd(-1),
        "umask": os.umask(0),
        "group_leader": os.getpgid(0) == os.getpid() == os.getsid(0),
        "stdin": sys.stdin.read(),
        "streams": [
            (s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through,
             type(s.buffer).__name__, s.newlines, s.fileno(), s.isatty())
            for s in (sys.stdin, sys.stdout, sys.stderr)
        ],
        "originals": [sys.__stdin__ is sys.stdin, sys.__stdout__ is sys.stdout,
                      sys.__stderr__ is sys.stderr],
        "executable": sys.executable,
        "prefix": [sys.prefix, sys.exec_prefix],
        "flags": list(sys.flags),
        "gc": __import__("gc").isenabled(),
        "limits": [resource.getrlimit(kind) for kind in (resource.RLIMIT_NOFILE,
                                                         resource.RLIMIT_STACK)],
        "depth": sys.getrecursionlimit(),
    }
    print(json.dumps(facts))
"""


HOOK = """
import sys
def hook(kind, value, trace): print(kind.__name__, value, trace.tb_lineno)
sys.excepthook = hook
raise LookupError("a")
"""
EXIT_CALLS = """
import atexit
atexit.register(print, "first")
atexit.register(print, "second")
raise RuntimeError
"""
THREAD = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"


@dataclass(frozen=True, slots=True)
class Stage:
    """A code directory, a warm interpreter for it, and the plain one beside it."""

    folder: Path
    client: WarmClient

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(textwrap.dedent(text))

    def plain(self, *argv: str, python: str = sys.executable, **environment: str) -> Ended:
        process = subprocess.Popen(
            [python, *argv],
            cwd=self.folder,
            env={**ENVIRONMENT, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        stdout, stderr = process.communicate(timeout=EVENT_TIMEOUT_S)
        return Ended(process.pid, process.returncode, stdout, stderr)

    def both(self, text: str, *argv: str) -> tuple[Ended, Ended]:
        """Run a script warm and plain."""
        self.write("script.py", text)
        return self.client.run(["script.py", *argv]), self.plain("script.py", *argv)


@pytest.fixture(scope="module")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("code")
    with WarmClient(folder, environment=ENVIRONMENT) as client:
        yield Stage(folder, client)


@pytest.fixture
def stage(shared_stage: Stage) -> Iterator[Stage]:
    yield shared_stage
    for path in shared_stage.folder.iterdir():
        if path.is_file():
            path.unlink()


@pytest.fixture
def fresh_stage(tmp_path: Path) -> Iterator[Stage]:
    with WarmClient(tmp_path, environment=ENVIRONMENT) as client:
        yield Stage(tmp_path, client)


READ_GATE = "import os; print(os.read(os.open('gate', os.O_RDONLY), 4))"


def open_gate(folder: Path) -> int:
    """Make the pipe that `READ_GATE` waits at; four bytes let one trial through."""
    os.mkfifo(folder / "gate")
    return os.open(folder / "gate", os.O_RDWR)


def assert_same(warm: Ended, plain: Ended) -> None:
    assert (warm.code, warm.stdout, warm.stderr) == (plain.code, plain.stdout, plain.stderr)


def test_script_finds_what_a_process_of_its_own_would_give_it(stage: Stage) -> None:
    stage.write("script.py", PROBE)
    argv = ["script.py", "--x", "ä b"]

    warm = stage.client.run(argv, environment={"NNI_A": "1"})

    assert warm.stderr == ""
    assert json.loads(warm.stdout) == json.loads(stage.plain(*argv, NNI_A="1").stdout)


def test_variable_can_be_taken_away(stage: Stage) -> None:
    stage.write("script.py", "import os; print('HOME' in os.environ, os.getenv('HOME'))")

    assert stage.client.run(["script.py"], unset=["HOME"]).stdout == "False None\n"


def test_preloaded_modules_change_none_of_it(fresh_stage: Stage) -> None:
    fresh_stage.write("script.py", PROBE)
    fresh_stage.write("learn.py", "import random, tempfile, logging.handlers, multiprocessing.pool")
    fresh_stage.client.run(["learn.py"])
    assert fresh_stage.client.wait_event("ready")["generation"] == 1

    warm = fresh_stage.client.run(["script.py"])

    assert json.loads(warm.stdout) == json.loads(fresh_stage.plain("script.py").stdout)


def test_unbuffered_streams_are_those_of_the_interpreters_switch(stage: Stage) -> None:
    stage.write("script.py", PROBE)

    warm = json.loads(stage.client.run(["script.py"], unbuffered=True).stdout)

    plain = json.loads(stage.plain("-u", "script.py").stdout)
    assert warm["streams"] == plain["streams"]


@pytest.mark.parametrize(
    "text",
    [
        "print('out')",
        "import sys; sys.exit(3)",
        "import sys; sys.exit(-1)",
        "import sys; sys.exit(2**70)",
        "import sys; sys.exit()",
        "import sys; sys.exit('no data')",
        "exit(5)",
        "raise SystemExit",
        "import os; print('lost'); os._exit(7)",
        "def f():\n    1/0\nf()",
        "try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e",
        "raise KeyboardInterrupt",
        "x = (\n1 +",
        "x = '\\",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal; os.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(9)",
        HOOK,
        EXIT_CALLS,
        "import sys; sys.stdout.close()",
        "import no_such_module",
        "print(open(__file__).read())",
        "#!/usr/bin/python\n# -*- coding: latin-1 -*-\nprint('latin')",
        "import warnings; warnings.warn('careful')",
        "import sys; sys.stderr.write('half a line')",
    ],
)
def test_output_and_exit_code_are_those_of_the_plain_interpreter(stage: Stage, text: str) -> None:
    warm, plain = stage.both(text)

    assert_same(warm, plain)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            """
            import threading, time
            over = threading.Event()
            def work(): over.wait(); time.sleep(0.05); print("thread done")
            threading.Thread(target=work).start()
            print("main done")
            over.set()
            """,
            id="threads are joined",
        ),
        pytest.param(
            """
            class Last:
                def __del__(self): print("destroyed", note)
            note = "with its globals"
            last = Last()
            """,
            id="destructors run",
        ),
        pytest.param(
            """
            import atexit
            file = open("left.txt", "w")
            file.write("kept")
            atexit.register(lambda: print("at exit"))
            """,
            id="open file",
        ),
        pytest.param(
            """
            import multiprocessing, os, pickle
            def square(x): return x * x
            if __name__ == "__main__":
                for method in ("fork", "spawn"):
                    with multiprocessing.get_context(method).Pool(2) as pool:
                        print(method, pool.map(square, range(4)))
            """,
            id="multiprocessing",
        ),
        pytest.param(
            """
            import dataclasses, inspect, pickle
            @dataclasses.dataclass
            class Point:
                x: int
                y: "int" = 2
            print(pickle.loads(pickle.dumps(Point(1))), inspect.getsource(Point))
            print(inspect.getsourcefile(Point), Point.__module__)
            """,
            id="classes of main",
        ),
        pytest.param(
            """
            import concurrent.futures
            pool = concurrent.futures.ThreadPoolExecutor(2)
            print(pool.submit(pow, 2, 5).result())
            """,
            id="executor left open",
        ),
        pytest.param(
            """
            import os, sys
            if os.fork() == 0:
                print("child"); sys.exit(0)
            os.wait(); print("parent")
            """,
            id="fork",
        ),
        pytest.param(
            """
            import subprocess, sys
            out = subprocess.run([sys.executable, "-c", "import sys; print(sys.argv, 1 + 1)"],
                                 stdin=subprocess.PIPE, capture_output=True, text=True)
            print(out)
            """,
            id="subprocess",
        ),
        pytest.param(
            """
            import asyncio
            async def main():
                p = await asyncio.create_subprocess_exec("echo", "hi", stdout=-1)
                print((await p.communicate())[0])
            asyncio.run(main())
            """,
            id="asyncio children",
        ),
        pytest.param(
            """
            import sys, traceback
            def depth(frame):
                return 1 + depth(frame.f_back) if frame and frame.f_globals is globals() else 0
            print(depth(sys._getframe()))
            try: 1/0
            except ZeroDivisionError: traceback.print_exc()
            """,
            id="own frames",
        ),
        pytest.param(
            "import ctypes; ctypes.CDLL(None).printf(b'from C\\n')", id="output of an extension"
        ),
        pytest.param("from sibling import VALUE\nprint(VALUE)", id="module beside the script"),
        pytest.param("import colorsys\nprint(colorsys.VALUE)", id="module that shadows"),
        pytest.param(
            """
            import gc, sys
            print(sys.getrefcount(__name__) > 0, len(gc.get_objects()) > 0, sys.orig_argv[1:])
            """,
            id="introspection",
        ),
    ],
)
def test_program_behaves_as_in_the_plain_interpreter(stage: Stage, text: str) -> None:
    stage.write("sibling.py", "VALUE = 1")
    stage.write("colorsys.py", "VALUE = 'mine'")

    warm, plain = stage.both(text)

    assert warm.code == plain.code, warm.stderr
    # Which of two processes writes first is up to the system.
    assert sorted(warm.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    assert warm.stderr == plain.stderr


def test_file_that_a_script_leaves_open_is_written(stage: Stage) -> None:
    text = "file = open('left.txt', 'w')\nfile.write('kept')"

    stage.both(text)

    assert (stage.folder / "left.txt").read_text() == "kept"


def test_output_that_cannot_be_written_is_an_error(stage: Stage) -> None:
    stage.write("script.py", "print('lost')")
    with open("/dev/full", "w") as full, (stage.folder / "err").open("w+b") as err:  # noqa: PTH123
        message = {"op": "start", "id": "full", "argv": ["script.py"], "cwd": str(stage.folder)}
        stage.client.send(message, [full.fileno(), err.fileno()])
        status = stage.client.wait_event("exited", id="full")["status"]
        plain = subprocess.run(
            [sys.executable, "script.py"],
            cwd=stage.folder,
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
        err.seek(0)

        assert os.waitstatus_to_exitcode(status) == plain.returncode == 120
        assert err.read() == plain.stderr


def test_missing_script_is_reported_in_the_interpreters_words(stage: Stage) -> None:
    assert_same(stage.client.run(["nowhere.py"]), stage.plain("nowhere.py"))


def test_script_in_a_subfolder_finds_its_own_siblings(stage: Stage) -> None:
    folder = stage.folder / "src"
    folder.mkdir(exist_ok=True)
    (folder / "near.py").write_text("VALUE = 'near'")
    (folder / "run.py").write_text("import sys, near; print(near.VALUE, sys.path[0], __file__)")

    assert_same(stage.client.run(["src/run.py"]), stage.plain("src/run.py"))


def test_folder_with_main_is_run_by_a_new_interpreter(stage: Stage) -> None:
    folder = stage.folder / "package"
    folder.mkdir(exist_ok=True)
    (folder / "__main__.py").write_text("import sys; print(sys.argv, sys.path[0]); sys.exit(4)")

    assert_same(stage.client.run(["package", "-v"]), stage.plain("package", "-v"))


MODULE_PROBE = """
import sys
from package import sibling
print(sys.argv, sys.path[0], sys.orig_argv[1:], sibling.VALUE)
print(__name__, __package__, __spec__.name, __file__, sys.modules["__main__"].__dict__ is globals())
"""


@pytest.mark.parametrize(
    "text",
    [MODULE_PROBE, "import sys; sys.exit(4)", "1 / 0", "import nowhere", "raise KeyboardInterrupt"],
)
def test_module_behaves_as_in_the_plain_interpreter(stage: Stage, text: str) -> None:
    folder = stage.folder / "package"
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").write_text("")
    (folder / "sibling.py").write_text("VALUE = 'near'")
    (folder / "program.py").write_text(text)

    assert_same(
        stage.client.run(["-m", "package.program", "-v"]),
        stage.plain("-m", "package.program", "-v"),
    )


def test_missing_module_is_reported_in_the_interpreters_words(stage: Stage) -> None:
    assert_same(stage.client.run(["-m", "nowhere"]), stage.plain("-m", "nowhere"))


def test_edited_files_are_read_again(stage: Stage) -> None:
    stage.write("sibling.py", "VALUE = 1")
    stage.write("script.py", "import sibling; print('one', sibling.VALUE)")
    first = stage.client.run(["script.py"])

    stage.write("sibling.py", "VALUE = 20")
    stage.write("script.py", "import sibling; print('two', sibling.VALUE)")
    second = stage.client.run(["script.py"])

    assert (first.stdout, second.stdout) == ("one 1\n", "two 20\n")


def test_every_trial_draws_its_own_random_numbers(fresh_stage: Stage) -> None:
    fresh_stage.write(
        "script.py",
        "import random, numpy, uuid, tempfile\n"
        "print(random.random(), numpy.random.random(), uuid.uuid4(), tempfile.mktemp())",
    )
    fresh_stage.client.run(["script.py"])
    assert "numpy" in fresh_stage.client.wait_event("ready")["preloaded"]

    draws = [fresh_stage.client.run(["script.py"]).stdout.split() for _ in range(3)]

    assert all(len(set(column)) == 3 for column in zip(*draws, strict=True))


def test_numpy_is_preloaded_with_one_thread_and_used_with_as_many_as_usual(
    fresh_stage: Stage,
) -> None:
    text = """
        import sys
        warm = "numpy" in sys.modules
        import json, os, numpy, threadpoolctl
        print(warm)
        print(json.dumps([pool["num_threads"] for pool in threadpoolctl.threadpool_info()]))
        print(os.environ.get("OPENBLAS_NUM_THREADS"), os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
    """
    fresh_stage.write("script.py", text)
    fresh_stage.client.run(["script.py"])
    fresh_stage.client.wait_event("ready", generation=1)

    warm = fresh_stage.client.run(["script.py"]).stdout.splitlines()

    assert warm[0] == "True"
    assert warm[1:] == fresh_stage.plain("script.py").stdout.splitlines()[1:]


def test_modules_of_the_code_directory_are_never_preloaded(fresh_stage: Stage) -> None:
    fresh_stage.write("sibling.py", "import colorsys")
    fresh_stage.write("script.py", "import sys; print('sibling' in sys.modules); import sibling")
    fresh_stage.client.run(["script.py"])

    preloaded = fresh_stage.client.wait_event("ready", generation=1)["preloaded"]

    assert "colorsys" in preloaded
    assert "sibling" not in preloaded
    assert fresh_stage.client.run(["script.py"]).stdout == "False\n"


@pytest.fixture
def site_stage(tmp_path: Path) -> Iterator[tuple[Stage, Path]]:
    """A stage whose interpreter has a site-packages folder of ours on its path."""
    site = tmp_path / "site-packages"
    code = tmp_path / "code"
    site.mkdir()
    code.mkdir()
    path = f"{site}:{code / 'lib'}"
    environment = {**ENVIRONMENT, "PYTHONPATH": path, "TMPDIR": str(tmp_path)}
    with WarmClient(code, environment=environment) as client:
        yield Stage(code, client), site


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (THREAD, "it leaves a thread running"),
        (
            "import os; os.environ.get('IN_TRIAL') or os.kill(os.getpid(), 9)",
            "wait status 9 of its import",
        ),
        (
            "import atexit, shutil\natexit.register(shutil.rmtree, '/no/such', True)",
            "it calls rmtree at exit",
        ),
        ("import config", "it imports config from outside the libraries"),
    ],
)
def test_module_that_forbids_forking_is_dropped(
    site_stage: tuple[Stage, Path], text: str, reason: str
) -> None:
    stage, site = site_stage
    (site / "rude.py").write_text(text)
    (site / "kind.py").write_text("VALUE = 1")
    (stage.folder / "lib").mkdir()
    stage.write("lib/config.py", "")
    stage.write("script.py", "import kind, rude")
    stage.client.run(["script.py"], environment={"IN_TRIAL": "1"})

    dropped = stage.client.wait_event("dropped")

    assert dropped["reason"] == reason
    assert dropped["module"] == "rude"
    stage.client.wait_event("ready", generation=1)
    stage.write("script.py", "import sys; print('kind' in sys.modules, 'rude' in sys.modules)")
    assert stage.client.run(["script.py"]).stdout == "True False\n"


def test_relative_search_path_starts_at_the_trials_folder(tmp_path: Path) -> None:
    code = tmp_path / "code"
    (code / "lib").mkdir(parents=True)
    (code / "lib" / "near.py").write_text("print('near')")
    (code / "script.py").write_text("import sys, near; print(sys.path)")
    environment = {**ENVIRONMENT, "PYTHONPATH": "lib:.:"}

    with WarmClient(tmp_path, environment=environment) as client:
        warm = client.run(["script.py"], cwd=str(code))

        assert_same(warm, Stage(code, client).plain("script.py", PYTHONPATH="lib:.:"))


def test_trial_that_asks_for_its_parameters_has_reported_its_imports(
    fresh_stage: Stage, tmp_path: Path
) -> None:
    gate = open_gate(fresh_stage.folder)
    fresh_stage.write("script.py", f"import colorsys, nni\nnni.get_next_parameter()\n{READ_GATE}")
    with TrialAgent(tmp_path, {}) as agent:
        start = fresh_stage.client.start(
            ["script.py"], environment={**agent.environment(), "PYTHONPATH": SDK}
        )

        ready = fresh_stage.client.wait_event("ready", generation=1)  # while the trial runs

    os.write(gate, b"open")
    fresh_stage.client.wait_event("exited")
    for descriptor in (*start, gate):
        os.close(descriptor)
    assert {"colorsys", "nni"} <= set(ready["preloaded"])


def test_module_that_cannot_be_preloaded_is_not_tried_for_every_trial(
    site_stage: tuple[Stage, Path],
) -> None:
    stage, site = site_stage
    (site / "picky.py").write_text("import __main__; __main__.PREPARED")
    stage.write("script.py", "PREPARED = 1; import picky")
    stage.client.run(["script.py"])
    stage.client.wait_event("ready", generation=1)

    for _ in range(3):
        stage.client.run(["script.py"])
    stage.client.send({"op": "preload", "modules": ["colorsys", "csv", "wave", "statistics"]})

    assert stage.client.wait_event("ready")["generation"] == 2


def test_agent_may_name_modules_to_preload(fresh_stage: Stage) -> None:
    fresh_stage.client.send({"op": "preload", "modules": ["colorsys", "no_such_module"]})

    ready = fresh_stage.client.wait_event("ready", generation=1)

    assert "colorsys" in ready["preloaded"]


def test_started_names_the_process_and_when_it_started(stage: Stage) -> None:
    stage.write("script.py", "import os\nprint(open('/proc/self/stat').read().split()[21])")

    ended = stage.client.run(["script.py"], trial="t9/2")

    started = stage.client.wait_event("started", id="t9/2")
    assert started["pid"] == ended.pid
    assert started["start_time"] == int(ended.stdout)


def test_process_title_is_the_command(stage: Stage) -> None:
    stage.write("script.py", "print(open('/proc/self/cmdline').read())")

    ended = stage.client.run(["script.py", "--x"], title=["python3", "script.py", "--x"])

    assert ended.stdout.strip().strip("\0") == "python3 script.py --x"


def test_limits_hold_in_the_trial(stage: Stage) -> None:
    stage.write("script.py", "import resource; print(resource.getrlimit(resource.RLIMIT_CPU))")

    ended = stage.client.run(["script.py"], limits={"RLIMIT_CPU": 50})

    assert ended.stdout == "(50, 50)\n"


def test_trial_that_cannot_be_set_up_says_why(stage: Stage) -> None:
    stage.write("script.py", "")

    ended = stage.client.run(["script.py"], cwd="/no/such/folder")

    assert ended.code == 126
    assert "/no/such/folder" in ended.stderr


@pytest.mark.parametrize(
    "message", [{"op": "start", "id": "a/1"}, {"op": "dance", "id": "a/1"}, {"id": "a/1"}]
)
def test_wrong_message_is_refused_and_the_next_one_served(
    stage: Stage, message: dict[str, object]
) -> None:
    stage.write("script.py", "print('fine')")

    stage.client.send(message)

    assert stage.client.wait_event("refused", id="a/1")["reason"]
    assert stage.client.run(["script.py"]).stdout == "fine\n"


def test_trials_run_side_by_side(stage: Stage) -> None:
    stage.write("script.py", READ_GATE)
    gate = open_gate(stage.folder)
    starts = [stage.client.start(["script.py"], trial=f"side/{n}") for n in range(3)]
    for n in range(3):
        stage.client.wait_event("started", id=f"side/{n}")

    os.write(gate, b"open" * 3)

    pids = {stage.client.wait_event("exited", id=f"side/{n}")["pid"] for n in range(3)}
    for out, err in starts:
        os.close(out)
        os.close(err)
    os.close(gate)
    (stage.folder / "gate").unlink()
    assert len(pids) == 3


def test_killed_trial_is_reported_with_its_signal(stage: Stage) -> None:
    stage.write("script.py", "import time; time.sleep(60)")
    for descriptor in stage.client.start(["script.py"], trial="k/1"):
        os.close(descriptor)

    os.killpg(stage.client.wait_event("started", id="k/1")["pid"], signal.SIGTERM)

    status = stage.client.wait_event("exited", id="k/1")["status"]
    assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM


def test_trials_die_with_the_agent(fresh_stage: Stage) -> None:
    fresh_stage.write("script.py", "import time; time.sleep(60)")
    out, err = fresh_stage.client.start(["script.py"])
    fresh_stage.client.wait_event("started")

    fresh_stage.client.close()

    with os.fdopen(out, "rb") as stdout, os.fdopen(err, "rb") as stderr:
        assert stdout.read() == stderr.read() == b""  # ends: no process holds the pipes


def test_quit_waits_for_running_trials(fresh_stage: Stage) -> None:
    gate = open_gate(fresh_stage.folder)
    fresh_stage.write("script.py", READ_GATE)
    fresh_stage.client.send({"op": "preload", "modules": ["colorsys"]})
    fresh_stage.client.wait_event("ready", generation=1)
    out, err = fresh_stage.client.start(["script.py"])
    fresh_stage.client.wait_event("started")

    fresh_stage.client.send({"op": "quit"})
    os.write(gate, b"open")

    assert fresh_stage.client.wait_event("exited")["status"] == 0
    assert fresh_stage.client.process.wait(EVENT_TIMEOUT_S) == 0
    os.close(err)
    with os.fdopen(out) as stdout:
        assert stdout.read() == "b'open'\n"
    os.close(gate)


def test_generation_that_dies_is_replaced_by_the_one_before(fresh_stage: Stage) -> None:
    fresh_stage.write("script.py", "print('served')")
    fresh_stage.client.send({"op": "preload", "modules": ["colorsys"]})
    ready = fresh_stage.client.wait_event("ready", generation=1)

    os.kill(ready["pid"], signal.SIGKILL)
    fresh_stage.client.wait_event("ready", generation=0)

    assert fresh_stage.client.run(["script.py"]).stdout == "served\n"


def test_library_that_a_script_configures_before_its_import_is_dropped(
    site_stage: tuple[Stage, Path],
) -> None:
    stage, site = site_stage
    (site / "pool.py").write_text("import os; SIZE = os.environ.get('OMP_NUM_THREADS')")
    stage.write(
        "script.py",
        "import os, colorsys; os.environ['OMP_NUM_THREADS'] = '3'; import pool; print(pool.SIZE)",
    )
    stage.client.run(["script.py"])
    dropped = stage.client.wait_event("dropped")
    preloaded = stage.client.wait_event("ready", generation=1)["preloaded"]

    again = stage.client.run(["script.py"])

    assert dropped["module"] == "pool"
    assert dropped["reason"] == "the script sets OMP_NUM_THREADS"
    assert "colorsys" in preloaded
    assert again.stdout == "3\n"


def test_variable_that_the_library_sets_itself_is_no_reason_to_drop_it(
    site_stage: tuple[Stage, Path],
) -> None:
    stage, site = site_stage
    (site / "pool.py").write_text("import os; os.environ['KMP_INIT'] = 'x'")
    stage.write("script.py", "import pool, os; print(os.environ['KMP_INIT'])")
    stage.client.run(["script.py"])

    assert "pool" in stage.client.wait_event("ready", generation=1)["preloaded"]
    assert stage.client.run(["script.py"]).stdout == "x\n"


def test_folder_that_a_library_removes_when_it_is_done_outlives_the_first_trial(
    site_stage: tuple[Stage, Path],
) -> None:
    stage, site = site_stage
    (site / "scratch.py").write_text("import tempfile; FOLDER = tempfile.TemporaryDirectory()")
    stage.write("script.py", "import os, scratch; print(os.path.isdir(scratch.FOLDER.name))")
    stage.client.run(["script.py"])
    stage.client.wait_event("ready", generation=1)

    ends = [stage.client.run(["script.py"]) for _ in range(2)]

    assert [ended.stdout for ended in ends] == ["True\n", "True\n"]


def test_script_may_close_and_reuse_every_descriptor(fresh_stage: Stage) -> None:
    fresh_stage.write(
        "script.py",
        """
        import colorsys, os
        os.closerange(3, 100)
        for number in range(20):
            open(f"file{number}", "wb", buffering=0).fileno()
        files = [open(f"file{number}", "ab", buffering=0) for number in range(20)]
        """,
    )

    ended = fresh_stage.client.run(["script.py"])

    assert (ended.code, ended.stderr.replace("ResourceWarning", "")) == (0, "")
    assert all((fresh_stage.folder / f"file{n}").read_bytes() == b"" for n in range(20))


def test_nonsense_from_a_script_does_not_end_the_server(fresh_stage: Stage) -> None:
    fresh_stage.write(
        "script.py",
        """
        import os
        for number in range(3, 20):
            try: os.write(number, b'{"modules": 1}')
            except OSError: pass
        """,
    )

    assert fresh_stage.client.run(["script.py"]).code == 0
    assert fresh_stage.client.run(["script.py"]).code == 0
