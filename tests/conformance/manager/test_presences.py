"""Conformance of every `Presences`."""

from tests.conformance.manager.conftest import TTL_S, PresenceWorld

LONG_S = 60.0


async def test_what_agents_said_last_is_given_back(
    presence_world: PresenceWorld, unique: str
) -> None:
    presences = presence_world.presences
    await presences.keep({f"{unique}-a": b"old", f"{unique}-b": b"\x00\xff"}, LONG_S)
    await presences.keep({f"{unique}-a": b"new"}, LONG_S)

    kept = await presences.all()

    assert kept[f"{unique}-a"] == b"new"
    assert kept[f"{unique}-b"] == b"\x00\xff"


async def test_agent_that_falls_silent_is_forgotten(
    presence_world: PresenceWorld, unique: str
) -> None:
    presences = presence_world.presences
    await presences.keep({f"{unique}-silent": b"x"}, TTL_S)
    await presences.keep({f"{unique}-alive": b"x"}, LONG_S)

    await presence_world.expired(f"{unique}-silent")

    kept = await presences.all()
    assert f"{unique}-silent" not in kept
    assert f"{unique}-alive" in kept


async def test_agent_that_leaves_is_forgotten_at_once(
    presence_world: PresenceWorld, unique: str
) -> None:
    presences = presence_world.presences
    await presences.keep({unique: b"x"}, LONG_S)

    await presences.forget(unique)
    await presences.forget(unique)

    assert unique not in await presences.all()


async def test_many_agents_are_all_given(presence_world: PresenceWorld, unique: str) -> None:
    presences = presence_world.presences
    said = {f"{unique}-{number}": b"%d" % number for number in range(2500)}

    await presences.keep(said, LONG_S)

    kept = await presences.all()
    assert {key: value for key, value in kept.items() if key.startswith(f"{unique}-")} == said
