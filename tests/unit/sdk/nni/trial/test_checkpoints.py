"""Checkpoints of trials that an agent has started."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import nni
from nni.trial.api import use_channel
from nni.trial.channel import TrialChannelError
from tests.support.trial_agent import TrialAgent


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrialAgent]:
    with TrialAgent(tmp_path, {}) as it:
        for name, value in it.environment().items():
            monkeypatch.setenv(name, value)
        use_channel(None)  # an earlier test may have been a trial of its own
        yield it
        use_channel(None)


def test_folder_is_in_the_output_of_the_trial_and_keeps_its_content(
    agent: TrialAgent, tmp_path: Path
) -> None:
    folder = nni.checkpoint_directory()
    (folder / "model").write_text("weights")

    again = nni.checkpoint_directory()

    assert folder == again == tmp_path / "output/checkpoint"
    assert (again / "model").read_text() == "weights"


def test_step_arrives_at_the_agent(agent: TrialAgent) -> None:
    assert nni.save_checkpoint(step=40)
    assert nni.save_checkpoint()

    assert agent.checkpoints == [40, None]


def test_integer_of_another_type_is_a_step(agent: TrialAgent) -> None:
    class Whole:
        """Integer as numpy has it."""

        def __index__(self) -> int:
            return 9

    assert nni.save_checkpoint(Whole())  # type: ignore[arg-type] # an integer all the same
    assert agent.checkpoints == [9]


@pytest.mark.parametrize("step", [1.5, "7", True])
def test_step_that_is_no_integer_is_refused(step: object) -> None:
    with pytest.raises(TypeError, match="step must be an integer"):
        nni.save_checkpoint(step)  # type: ignore[arg-type] # the error


def test_step_beyond_the_integers_of_json_is_refused() -> None:
    with pytest.raises(ValueError, match="between -2\\^53 and 2\\^53"):
        nni.save_checkpoint(2**53 + 1)


def test_failed_copy_is_a_warning(agent: TrialAgent, capsys: pytest.CaptureFixture[str]) -> None:
    agent.checkpoint_warning = "the checkpoint is not saved: no space left"

    assert not nni.save_checkpoint(step=1)

    error = capsys.readouterr().err
    assert error.startswith("WARNING (nni) the checkpoint is not saved: no space left")
    assert "the trial goes on" in error


def test_checkpoint_does_not_wait_for_a_report_of_another_thread(agent: TrialAgent) -> None:
    nni.get_next_parameter()
    agent.hold.clear()
    reporting = threading.Thread(target=nni.report_intermediate_result, args=[0.5])
    reporting.start()
    agent.held.wait(30)

    saved = nni.save_checkpoint(step=1)

    agent.hold.set()
    reporting.join(30)
    assert saved
    assert [value for _, _, value in agent.metrics] == [0.5]


def test_agent_that_is_gone_is_an_error(agent: TrialAgent) -> None:
    agent.path.unlink()

    with pytest.raises(TrialChannelError, match="no agent answers"):
        nni.save_checkpoint(step=1)
