import pytest

from svc_manager.domain import inputs
from svc_manager.domain.experiment import Budget, ExperimentSettings
from svc_manager.domain.reports import Started
from svc_manager.event_log.reader import FoldedExperiment
from svc_manager.event_log.snapshot import (
    SnapshotError,
    decode_snapshot,
    encode_snapshot,
    take_snapshot,
)
from tests.unit.services.manager.building import (
    Lab,
    exited,
    final,
    intermediate,
    lost,
    waits_for_gpus,
)


def busy() -> Lab:
    """An experiment with something in every field that can be reached in a few steps."""
    lab = Lab(Budget(trial_concurrency=4), lookahead=True)
    lab.answer(deferred=1)
    trial = lab.running()
    lab.report(trial, 1, intermediate(0.5))
    lab.report(trial, 2, final(float("inf")))
    lab.report(trial, 9, exited())
    other = lab.running(claim="c2")
    lab.report(other, 5, Started(1), claim="c2")
    return lab


def test_a_snapshot_keeps_causes_within_causes() -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=1, retry_failed_trials=1))
    trial = lab.running()
    lab.report(trial, 1, exited(3, detail="boom"))
    lab.running(claim="c2")
    lab.report(trial, 1, lost("power cut"), claim="c2")
    lab.report(trial, 0, waits_for_gpus(), claim="c3")
    lab.running(claim="c4")
    lab.command(inputs.KillTrial(trial.id))
    folded = FoldedExperiment(lab.experiment, 17, 3, 99)

    again = decode_snapshot(encode_snapshot(folded))

    assert again == folded
    assert again.experiment.trials[trial.id].lost_attempts[0].loss.end is not None


def test_equal_ends_are_one_value_and_others_are_read_as_written() -> None:
    lab = Lab(Budget(trial_concurrency=4))
    for number, code in enumerate((3, 3, 4, 3)):
        trial = lab.running(claim=f"c{number}")
        lab.report(trial, 1, exited(code, detail="boom"), claim=f"c{number}")

    read = decode_snapshot(encode_snapshot(FoldedExperiment(lab.experiment))).experiment

    first, second, third, fourth = (trial.end for trial in read.trials.values())
    assert first is second
    assert [end and end.exit_code for end in (first, second, third, fourth)] == [3, 3, 4, 3]
    assert read == lab.experiment


def test_a_snapshot_gives_back_the_whole_state() -> None:
    folded = FoldedExperiment(busy().experiment, 17, 3, 99)

    again = decode_snapshot(encode_snapshot(folded))

    assert again == folded


def test_live_trials_of_a_snapshot_are_those_of_the_whole_list() -> None:
    again = decode_snapshot(encode_snapshot(FoldedExperiment(busy().experiment)))

    assert again.experiment.live
    assert all(
        again.experiment.trials[key] is trial for key, trial in again.experiment.live.items()
    )


def test_an_experiment_goes_on_from_a_snapshot_as_from_its_log() -> None:
    lab = busy()
    trial = next(iter(lab.experiment.live.values()))
    lab.experiment = decode_snapshot(encode_snapshot(FoldedExperiment(lab.experiment))).experiment

    for sequence in range(3, 9):
        lab.report(lab.experiment.trials[trial.id], sequence, intermediate(0.1, sequence))

    assert lab.experiment.trials[trial.id].state.name == "SUCCEEDED"
    assert lab.refolded() == lab.experiment


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", encode_snapshot(FoldedExperiment(busy().experiment))[:-9]]
)
def test_what_is_no_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError):
        decode_snapshot(data)


def test_what_happens_after_a_snapshot_was_taken_is_not_in_it() -> None:
    lab = busy()
    folded = FoldedExperiment(lab.experiment)
    before = encode_snapshot(folded)
    taken = take_snapshot(folded)

    trial = next(one for one in lab.experiment.live.values() if one.runner_id)
    lab.report(trial, trial.report_sequence + 1, exited(3))
    lab.answer()

    assert taken.encode() == before
