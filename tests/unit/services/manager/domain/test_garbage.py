"""The rules of garbage; no history of stores, references and sweeps loses what is named."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_manager.domain.garbage import Marks, StoredBlob, garbage

GRACE_MS = 1000
WEEK_MS = 604_800_000


def blob(key: str, stored_at_ms: int = 0) -> StoredBlob:
    return StoredBlob(key, 1, stored_at_ms)


def test_content_that_no_log_names_is_garbage_once_it_is_old() -> None:
    blobs = [blob("sha256/named"), blob("sha256/other"), blob("sha256/young", 9500)]

    found = garbage(blobs, Marks({"named"}, ()), 10_000, GRACE_MS)

    assert [one.key for one in found.old] == ["sha256/other"]
    assert [one.key for one in found.young] == ["sha256/young"]


def test_garbage_is_old_from_the_end_of_its_grace_on() -> None:
    blobs = [blob("sha256/old", 9_000), blob("sha256/young", 9_001)]

    found = garbage(blobs, Marks((), ()), 10_000, GRACE_MS)

    assert [one.key for one in found.old] == ["sha256/old"]
    assert [one.key for one in found.young] == ["sha256/young"]


def test_staged_upload_is_garbage_whatever_is_named() -> None:
    found = garbage([blob("staging/named")], Marks({"named"}, {"named"}), 10_000, GRACE_MS)

    assert len(found.old) == 1


def test_what_belongs_to_an_experiment_goes_with_it() -> None:
    keys = ["output/e1/t/1/stdout", "output/e2/t/1/stdout", "snapshot/e2/state", "summary/e1/7"]

    found = garbage(map(blob, keys), Marks((), {"e1"}), 10_000, GRACE_MS)

    assert [one.key for one in found.old] == ["output/e2/t/1/stdout", "snapshot/e2/state"]


def test_record_of_an_upload_goes_with_its_checkpoint_or_its_experiment() -> None:
    keys = ["uploaded/e1/named", "uploaded/e1/dead", "uploaded/e2/named"]

    found = garbage(map(blob, keys), Marks({"named"}, {"e1"}), 10_000, GRACE_MS)

    assert [one.key for one in found.old] == ["uploaded/e1/dead", "uploaded/e2/named"]


def test_name_that_only_begins_like_an_experiment_is_not_its() -> None:
    found = garbage([blob("output/e10/t/1/stdout")], Marks((), {"e1"}), 10_000, GRACE_MS)

    assert len(found.old) == 1


def test_kind_that_is_not_known_stays() -> None:
    found = garbage([blob("archive/e9/log"), blob("probe/clock")], Marks((), ()), 10_000, 0)

    assert found.old == found.young == ()


def test_deletion_is_remembered_for_a_week_whatever_the_grace() -> None:
    blobs = [blob("tombstone/old", 0), blob("tombstone/new", 1)]

    found = garbage(blobs, Marks((), ()), WEEK_MS, 0)

    assert [one.key for one in found.old] == ["tombstone/old"]
    assert found.young == ()


KEYS = st.one_of(
    st.sampled_from("abcdef").map(lambda name: f"sha256/{name}"),
    st.tuples(
        st.sampled_from(["output", "snapshot", "summary", "other"]), st.sampled_from("xyz")
    ).map(lambda pair: f"{pair[0]}/{pair[1]}/file"),
)


@given(
    keys=st.dictionaries(KEYS, st.integers(0, 20_000)),
    content=st.sets(st.sampled_from("abcdef")),
    experiments=st.sets(st.sampled_from("xyz")),
    now_ms=st.integers(0, 20_000),
    grace_ms=st.integers(0, 20_000),
)
def test_only_what_is_old_and_not_wanted_may_go(
    keys: dict[str, int], content: set[str], experiments: set[str], now_ms: int, grace_ms: int
) -> None:
    blobs = [blob(key, stored) for key, stored in keys.items()]

    found = garbage(blobs, Marks(content, experiments), now_ms, grace_ms)

    for one in found.old:
        kind, name = one.key.split("/")[:2]
        assert now_ms - one.stored_at_ms >= grace_ms
        assert name not in (content if kind == "sha256" else experiments)
        assert kind != "other"
    wanted = {f"sha256/{name}" for name in content}
    assert wanted.isdisjoint(one.key for one in (*found.old, *found.young))


@dataclass
class World:
    """A store, the logs, and uploads whose fact is still on its way."""

    now_ms: int = 0
    stored: dict[str, int] = field(default_factory=dict)
    named: dict[str, set[str]] = field(default_factory=dict)
    on_the_way: list[tuple[int, str, str]] = field(default_factory=list)
    """When it was stored, hash, experiment."""


class Sweeps(RuleBasedStateMachine):
    """Writers store and then name within the grace; a sweep lists, reads the logs, and deletes."""

    FRESH_MS = GRACE_MS // 4
    """Content this young is not stored again; what was not is named within the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.listed: list[StoredBlob] | None = None

    @rule(name=st.sampled_from("abcd"), experiment=st.sampled_from("xyz"))
    def store(self, name: str, experiment: str) -> None:
        world = self.world
        age_ms = world.now_ms - world.stored.get(name, -10 * GRACE_MS)
        if age_ms >= self.FRESH_MS:
            world.stored[name] = world.now_ms
        world.on_the_way.append((world.now_ms, name, experiment))

    @rule(data=st.data())
    def name(self, data: st.DataObject) -> None:
        if self.world.on_the_way:
            index = data.draw(st.integers(0, len(self.world.on_the_way) - 1))
            _, name, experiment = self.world.on_the_way.pop(index)
            self.world.named.setdefault(experiment, set()).add(name)

    @rule(step_ms=st.integers(1, GRACE_MS // 4))
    def wait(self, step_ms: int) -> None:
        self.world.now_ms += step_ms
        # A writer that is slower than the grace allows is a writer that has died.
        self.world.on_the_way = [
            one
            for one in self.world.on_the_way
            if self.world.now_ms - one[0] < GRACE_MS - self.FRESH_MS
        ]

    @rule(experiment=st.sampled_from("xyz"))
    def delete(self, experiment: str) -> None:
        self.world.named.pop(experiment, None)

    @rule()
    def list_store(self) -> None:
        stored = self.world.stored.items()
        self.listed = [blob(f"sha256/{name}", at) for name, at in stored]

    @rule()
    def sweep(self) -> None:
        """Mark and delete what was listed, perhaps long ago."""
        if self.listed is None:
            return
        content = set[str]().union(*self.world.named.values())
        marks = Marks(content, set(self.world.named))
        for one in garbage(self.listed, marks, self.world.now_ms, GRACE_MS).old:
            name = one.key.partition("/")[2]
            if self.world.stored.get(name) == one.stored_at_ms:  # not stored again since
                del self.world.stored[name]
        self.listed = None

    @invariant()
    def nothing_that_is_named_or_about_to_be_is_gone(self) -> None:
        for names in self.world.named.values():
            assert names <= self.world.stored.keys()
        assert {name for _, name, _ in self.world.on_the_way} <= self.world.stored.keys()


Sweeps.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestSweeps = Sweeps.TestCase
