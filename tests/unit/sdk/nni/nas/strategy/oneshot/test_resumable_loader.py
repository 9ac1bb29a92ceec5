"""Loaders of trainings that go on in the middle of an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from nni.nas.strategy.oneshot.resumable_loader import ResumableLoader, ResumableLoaders


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def numbers() -> Any:
    return DataLoader(range(8), 2, shuffle=True)  # type: ignore[arg-type] # a sequence is a data set


def drawn(batches: Iterator[Any]) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


def test_pass_goes_on_with_the_batches_that_it_would_have_had() -> None:
    loader = ResumableLoader(numbers())
    batches = iter(loader)
    drawn(islice(batches, 2))
    state = loader.state_dict()
    rest = drawn(batches)

    torch.manual_seed(7)
    again = ResumableLoader(numbers())
    again.load_state_dict(state)

    assert drawn(iter(again)) == rest
    assert len(again) == 4


def test_order_of_the_interrupted_pass_takes_no_random_numbers_of_the_present() -> None:
    loader = ResumableLoader(numbers())
    drawn(islice(loader, 2))
    again = ResumableLoader(numbers())
    again.load_state_dict(loader.state_dict())
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)

    next(iter(again))

    assert torch.rand(1) == expected


def test_pass_after_a_resumed_one_has_an_order_of_its_own() -> None:
    loader = ResumableLoader(numbers())
    drawn(islice(loader, 2))
    again = ResumableLoader(numbers())
    again.load_state_dict(loader.state_dict())
    drawn(iter(again))

    assert sorted(chain(*drawn(iter(again)))) == list(range(8))


def test_pass_that_was_ended_begins_anew() -> None:
    loaders = ResumableLoaders()
    loader = loaders.wrap(numbers())
    drawn(islice(loader, 2))
    loaders.end_pass()
    again = ResumableLoader(numbers())
    again.load_state_dict(loader.state_dict())

    assert len(drawn(iter(again))) == 4


@pytest.mark.parametrize("form", [dict, list, tuple])
def test_loaders_keep_their_form(form: Any) -> None:
    loaders = ResumableLoaders()

    two = [numbers(), numbers()]
    wrapped = loaders.wrap(dict(enumerate(two)) if form is dict else form(two))

    assert type(wrapped) is form
    assert loaders.complete


def test_training_with_a_loader_without_a_size_is_not_resumable() -> None:
    class Endless(torch.utils.data.IterableDataset[int]):
        """Data set without a size."""

        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

    endless = DataLoader(Endless())
    loaders = ResumableLoaders()

    wrapped = loaders.wrap({"sized": numbers(), "endless": endless})

    assert wrapped["endless"] is endless
    assert not loaders.complete
