"""Reading of logs into state, and completion of journals."""

from dataclasses import replace

import pytest

from svc_common.errors import FailedPreconditionError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.converters.events import Stamp, batch_to_bytes
from svc_manager.domain.state import Experiment
from svc_manager.event_log.reader import FoldedExperiment, complete_journal, fold_batch, load
from tests.unit.services.manager.building import EXPERIMENT_ID, Lab


class RecordingJournal:
    """`Journal` that keeps its records in memory."""

    def __init__(self, last_sequence: int = 0) -> None:
        self.last_sequence = last_sequence
        self.records: list[int] = []
        self.flushed = False

    def record(self, sequence: int, payload: bytes) -> None:
        assert payload
        self.records.append(sequence)

    def add_line(self, time_ms: int, level: str, logger: str, text: str) -> None:
        raise AssertionError("no line is expected")

    def flush(self) -> None:
        self.flushed = True

    def close(self) -> None:
        raise AssertionError("the journal stays open")


def comparable(experiment: Experiment, lab: Lab) -> Experiment:
    """Return a folded state with the fields of the configuration, which a lab leaves empty."""
    return replace(experiment, budget=lab.experiment.budget, directory=lab.experiment.directory)


def batches_of(lab: Lab, epoch: int = 1) -> list[tuple[int, bytes]]:
    """Return each event of a lab as (sequence, encoded batch)."""
    return [
        (number + 1, batch_to_bytes([event], Stamp(epoch, number, time_ms), inbox_sequence=number))
        for number, (time_ms, event) in enumerate(lab.log)
    ]


async def write(bus: InMemoryBus, lab: Lab, epoch: int = 1) -> list[int]:
    """Append each event of a lab as a batch; return the sequences."""
    sequences = [0]
    for number, (_, payload) in enumerate(batches_of(lab, epoch)):
        sequences.append(
            await bus.events.append(
                EXPERIMENT_ID,
                payload,
                expected_sequence=sequences[-1],
                epoch=epoch,
                append_id=str(number),
            )
        )
    return sequences[1:]


async def test_a_log_folds_to_the_state_that_wrote_it() -> None:
    lab = Lab()
    lab.finish(lab.running())
    async with InMemoryBus() as bus:
        sequences = await write(bus, lab, epoch=3)

        folded = await load(bus.events, EXPERIMENT_ID)

    assert comparable(folded.experiment, lab) == lab.experiment
    assert (folded.sequence, folded.epoch) == (sequences[-1], 3)
    assert folded.inbox_sequence == len(lab.log) - 1


async def test_an_empty_log_gives_an_experiment_that_is_not_created() -> None:
    async with InMemoryBus() as bus:
        folded = await load(bus.events, EXPERIMENT_ID)

    assert not folded.experiment.created
    assert folded.sequence == 0


async def test_a_fold_goes_on_from_a_snapshot() -> None:
    lab = Lab()
    async with InMemoryBus() as bus:
        await write(bus, lab)
        start = await load(bus.events, EXPERIMENT_ID)
        whole = len(lab.log)
        lab.finish(lab.running())
        later = Lab()
        later.log = lab.log[whole:]
        for number, (time_ms, event) in enumerate(later.log):
            await bus.events.append(
                EXPERIMENT_ID,
                batch_to_bytes([event], Stamp(1, whole + number, time_ms), 0),
                expected_sequence=(start.sequence + number),
                epoch=1,
                append_id=f"later-{number}",
            )

        folded = await load(bus.events, EXPERIMENT_ID, start)

    assert folded is start
    assert comparable(folded.experiment, lab) == lab.experiment


async def test_an_unreadable_batch_names_its_place_and_a_remedy() -> None:
    async with InMemoryBus() as bus:
        sequence = await bus.events.append(
            EXPERIMENT_ID, b"\xff\xff", expected_sequence=0, epoch=1, append_id="0"
        )

        with pytest.raises(FailedPreconditionError, match=f"cannot be read at {sequence}"):
            await load(bus.events, EXPERIMENT_ID)


def test_epochs_and_cursors_never_go_back() -> None:
    folded = FoldedExperiment(Experiment(), epoch=5, inbox_sequence=9)

    fold_batch(folded, 3, batch_to_bytes([], Stamp(4, 0, 1), 7))

    assert (folded.sequence, folded.epoch, folded.inbox_sequence) == (3, 5, 9)


async def test_a_journal_gets_the_batches_that_it_lacks() -> None:
    async with InMemoryBus() as bus:
        sequences = await write(bus, Lab())
        journal = RecordingJournal(sequences[0])

        await complete_journal(bus.events, EXPERIMENT_ID, lambda: journal, sequences[-1])

    assert journal.records == sequences[1:]
    assert journal.flushed


async def test_a_complete_journal_is_left_alone() -> None:
    async with InMemoryBus() as bus:
        sequences = await write(bus, Lab())
        journal = RecordingJournal(sequences[-1])

        await complete_journal(bus.events, EXPERIMENT_ID, lambda: journal, sequences[-1])

    assert journal.records == []
    assert not journal.flushed
