import contextlib
import io

import pytest

from nni.cli.main import DONE, main
from nni_proto.experiment.v1 import experiment_pb2
from tests.support.in_memory_manager import InMemoryManager

STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED


class InterruptedScreen(io.StringIO):
    """Standard output during which Ctrl-C is pressed as soon as something was shown."""

    def flush(self) -> None:
        if self.getvalue():
            raise KeyboardInterrupt


def interrupted_top(*words: str) -> str:
    """Run `nnictl top` until it has shown something; return that."""
    with contextlib.redirect_stdout(InterruptedScreen()) as screen:
        assert main(["top", *words]) == DONE
    return screen.getvalue()


def test_top_ends_when_nothing_runs(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("old00000", state=STOPPED)

    assert main(["top"]) == DONE

    assert "There is no experiment running." in capsys.readouterr().out


def test_top_shows_counts_the_best_value_and_the_newest_trials(
    manager: InMemoryManager,
) -> None:
    manager.add_experiment(
        "abcd1234",
        trial_counts={"TRIAL_STATE_SUCCEEDED": 20},
        best_value=0.9375,
        best_trial_id="t0007",
    )
    for number in range(20):
        manager.add_trial("abcd1234", f"t{number:04}", result=number / 100)

    shown = interrupted_top("abcd")

    assert "abcd1234  tuning  RUNNING  port 8080  SUCCEEDED 20  best 0.9375" in shown
    assert "t0019" in shown
    assert "t0005" in shown
    assert "t0004" not in shown


def test_ctrl_c_ends_it_quietly(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234")

    assert "There is no experiment running." not in interrupted_top()
