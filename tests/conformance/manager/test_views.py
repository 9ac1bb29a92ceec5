"""Conformance of every `Views`."""

import asyncio
import itertools

from svc_manager.ports import Views


async def test_view_comes_back_with_its_place_in_the_log(views: Views, unique: str) -> None:
    view = bytes(range(256))

    await views.put(unique, 2**40, view)

    assert await views.get([unique]) == {unique: (2**40, view)}


async def test_unknown_view_is_none(views: Views, unique: str) -> None:
    assert await views.get([unique]) == {}


async def test_new_view_replaces_the_old(views: Views, unique: str) -> None:
    await views.put(unique, 1, b"a long old view")
    await views.put(unique, 2, b"new")

    assert await views.get([unique]) == {unique: (2, b"new")}


async def test_empty_view_at_the_start_of_a_log_is_a_view(views: Views, unique: str) -> None:
    await views.put(unique, 0, b"")

    assert await views.get([unique]) == {unique: (0, b"")}


async def test_views_of_experiments_are_apart(views: Views, unique: str) -> None:
    await views.put(unique, 1, b"one")
    await views.put(f"{unique}-b", 2, b"other")

    await views.delete(unique)
    await views.delete(unique)

    found = await views.get([unique, f"{unique}-b", f"{unique}-c"])
    assert found == {f"{unique}-b": (2, b"other")}


async def test_view_is_never_seen_in_halves(views: Views, unique: str) -> None:
    written = [(number, bytes([number]) * 10_000) for number in range(20)]

    await asyncio.gather(*(views.put(unique, *one) for one in written))

    found = await views.get([unique])
    assert found[unique] in written


async def test_many_views_are_read_at_once(views: Views, unique: str) -> None:
    written = {f"{unique}-{number}": (number, b"%d" % number) for number in range(1200)}
    sample = dict(itertools.islice(written.items(), 0, None, 97))
    await asyncio.gather(*(views.put(key, *view) for key, view in sample.items()))

    assert await views.get(written.keys()) == sample


async def test_nothing_asked_is_nothing_given(views: Views) -> None:
    assert await views.get([]) == {}
