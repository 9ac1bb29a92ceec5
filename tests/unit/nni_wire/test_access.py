from datetime import UTC, datetime

import pytest

from nni_wire.access import (
    ENTRY_LIMIT,
    AccessEntry,
    dump_entries,
    fingerprint,
    load_entries,
    new_token,
)

ENTRIES = (
    AccessEntry("alice", "user", sha256=fingerprint("a"), created=datetime(2026, 1, 2, tzinfo=UTC)),
    AccessEntry("box@lab", "admin", common_name="box", expires=datetime(2030, 1, 1, tzinfo=UTC)),
    AccessEntry("nni-1-p-1", "agent", sha256=fingerprint("b"), pool="p"),
)


def test_what_is_written_is_read() -> None:
    assert load_entries(dump_entries(ENTRIES)) == ENTRIES


def test_file_holds_no_token() -> None:
    token = new_token()

    text = dump_entries([AccessEntry("alice", "user", sha256=fingerprint(token))])

    assert token not in text


def test_tokens_differ_and_are_long() -> None:
    tokens = {new_token() for _ in range(100)}

    assert len(tokens) == 100
    assert all(len(token) >= 43 for token in tokens)


def test_time_without_a_zone_is_utc() -> None:
    (entry,) = load_entries(
        '{"version": 1, "callers": [{"name": "a", "role": "user", "common_name": "a",'
        ' "expires": "2030-01-01T00:00:00"}]}'
    )

    assert entry.expires == datetime(2030, 1, 1, tzinfo=UTC)


def caller(fields: str) -> str:
    return f'{{"version": 1, "callers": [{{{fields}}}]}}'


TOKEN = f'"sha256": "{"0" * 64}"'


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "version 1"),
        ('{"version": 2, "callers": []}', "version 1"),
        ('{"version": 1, "callers": {}}', "callers must be a list"),
        (f'{{"version": 1, "callers": [{"1," * ENTRY_LIMIT}1]}}', "at most"),
        ('{"version": 1, "callers": [1]}', "object of texts"),
        (caller(f'"name": "a", "role": "user", {TOKEN}, "x": "y"'), "no field 'x'"),
        (caller(f'"name": "a b", "role": "user", {TOKEN}'), "name must be"),
        (caller(f'"name": "a", "role": "root", {TOKEN}'), "role must be one of"),
        (caller('"name": "a", "role": "user"'), "either sha256 or common_name"),
        (caller(f'"name": "a", "role": "user", {TOKEN}, "common_name": "a"'), "either"),
        (caller('"name": "a", "role": "user", "sha256": "00"'), "64 hexadecimal"),
        (caller(f'"name": "a", "role": "user", {TOKEN}, "expires": "soon"'), "ISO 8601"),
        (caller(f'"name": "a", "role": "user", {TOKEN}, "pool": "p"'), "pool of a must be left"),
        (caller('"name": "a", "role": "agent", "common_name": "a", "pool": "p"'), "pool of a"),
    ],
)
def test_files_that_are_none_say_why(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        load_entries(text)


def test_caller_is_in_it_once() -> None:
    with pytest.raises(ValueError, match="'alice' twice"):
        load_entries(dump_entries([ENTRIES[0], ENTRIES[0]]))


@pytest.mark.parametrize(
    "name", ["installation", "Installation", "agents", "anybody-on-this-machine"]
)
def test_names_of_callers_without_an_entry_are_reserved(name: str) -> None:
    with pytest.raises(ValueError, match="caller of the services"):
        AccessEntry(name, "viewer", sha256=fingerprint("a"))
