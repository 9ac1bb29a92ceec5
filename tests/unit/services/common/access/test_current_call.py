"""Context of calls; who is an owner is tested with the folders that only an owner may name."""

import asyncio

from svc_common.access.current_call import (
    audit_folder,
    is_administrator,
    is_owner,
    limited_agent,
    may_act_for,
    serving,
    start_serving,
)
from svc_common.access.roles import SERVICES_NAME, Caller, Role

OWNER = Caller(SERVICES_NAME, Role.ADMIN, "token")
USER = Caller("uma", Role.USER, "token")


async def test_concurrent_calls_have_callers_of_their_own() -> None:
    begun = asyncio.Event()

    async def owner() -> bool:
        with serving(OWNER):
            await begun.wait()
            return is_owner()

    async def user() -> bool:
        start_serving(USER)
        begun.set()
        return is_owner()

    assert list(await asyncio.gather(owner(), user())) == [True, False]
    assert not is_owner()


def test_folders_are_those_of_the_inner_call() -> None:
    with serving(OWNER) as outer:
        with serving(USER) as inner:
            audit_folder("/inner")
        audit_folder("/outer")

    assert (outer.folders, inner.folders) == (["/outer"], ["/inner"])


def test_only_an_agent_with_a_pool_is_limited_to_it() -> None:
    box = Caller("nni-1-p-1", Role.AGENT, "token", "p")
    found = []
    for caller in (box, Caller("agents", Role.AGENT, "token"), USER):
        with serving(caller):
            found.append(limited_agent())

    assert found == [box, None, None]
    assert limited_agent() is None  # no call: the service itself


def test_caller_acts_for_himself_and_an_administrator_for_all() -> None:
    with serving(USER):
        assert [may_act_for(name) for name in ("uma", "bob", "")] == [True, False, False]
    with serving(OWNER):
        assert may_act_for("bob")
        assert may_act_for("")
    assert may_act_for("bob")  # no call: the service itself


def test_administrators_differ_from_users() -> None:
    found = {}
    for caller in (OWNER, Caller("ada", Role.ADMIN, "token"), USER):
        with serving(caller):
            found[caller.name] = is_administrator()

    assert found == {SERVICES_NAME: True, "ada": True, "uma": False}
    assert is_administrator()
