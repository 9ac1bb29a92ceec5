import pytest

from svc_trial_runner.domain.command import (
    PythonCommand,
    load_time_variables,
    parse_python_command,
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("python train.py", PythonCommand("python", False, ("train.py",))),
        ("python3 train.py --lr 0.1", PythonCommand("python3", False, ("train.py", "--lr", "0.1"))),
        ("  python3 -u a/b.py  ", PythonCommand("python3", True, ("a/b.py",))),
        ("python3.11 t.py", PythonCommand("python3.11", False, ("t.py",))),
        ("/usr/bin/python3 t.py", PythonCommand("/usr/bin/python3", False, ("t.py",))),
        ("python t.py 'a b' \"c\"", PythonCommand("python", False, ("t.py", "a b", "c"))),
        ("python t.py --name=x -u", PythonCommand("python", False, ("t.py", "--name=x", "-u"))),
        ("python -m a.b --c", PythonCommand("python", False, ("-m", "a.b", "--c"))),
        ("python -u -m a", PythonCommand("python", True, ("-m", "a"))),
    ],
)
def test_line_that_only_runs_a_program_of_python_is_parsed(
    line: str, expected: PythonCommand
) -> None:
    assert parse_python_command(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "",
        "python",
        "python -u",
        "python -m",
        "python -m a/b.py",
        "python -mpackage",
        "python -c pass",
        "python -O train.py",
        "python -u -B train.py",
        "python2 train.py",
        "pythonw train.py",
        "bash run.sh",
        "X=1 python train.py",
        "cd a && python train.py",
        "python train.py; echo",
        "python train.py | tee log",
        "python train.py > log",
        "python train.py &",
        "python train.py $HOME",
        "python train.py `date`",
        "python train.py *.csv",
        "python train.py ~/data",
        "python train.py {a,b}",
        "python train.py a\\ b",
        "python train.py # comment",
        "python train.py\necho",
        "python train.py 'open",
        "python train.txt",
        "!python train.py",
    ],
)
def test_line_that_needs_a_shell_is_left_to_it(line: str) -> None:
    assert parse_python_command(line) is None


def test_variables_read_at_load_time_are_picked() -> None:
    environment = {"HOME": "/", "PYTHONPATH": "/x", "OMP_NUM_THREADS": "2", "LD_PRELOAD": "y"}

    assert load_time_variables(environment) == (
        ("LD_PRELOAD", "y"),
        ("OMP_NUM_THREADS", "2"),
        ("PYTHONPATH", "/x"),
    )
