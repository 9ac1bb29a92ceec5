from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from svc_manager.domain.checkpoints import SavedCheckpoint, TrialCheckpoint, dead_archives

FOLDERS = st.sampled_from(["/c/0/0", "/c/0/1", "/c/1/0", "/c/1/1"])


def saved(**hashes: str) -> dict[str, SavedCheckpoint]:
    return {name: SavedCheckpoint(name, sha256, 1) for name, sha256 in hashes.items()}


def test_released_archive_is_dead() -> None:
    assert dead_archives(saved(a="1", b="2"), {"a"}, ()) == {"1"}


def test_released_archive_that_a_live_trial_loads_is_not_dead() -> None:
    assert dead_archives(saved(a="1"), {"a"}, {"a"}) == frozenset()


def test_content_that_another_folder_shares_is_not_dead() -> None:
    assert dead_archives(saved(a="1", b="1"), {"a"}, ()) == frozenset()


def test_released_folder_that_was_never_saved_means_nothing() -> None:
    assert dead_archives(saved(a="1"), {"nowhere"}, ()) == frozenset()


@settings(deadline=None)  # a busy machine may stop the test at any place
@given(
    hashes=st.dictionaries(FOLDERS, st.sampled_from("abc")),
    released=st.sets(FOLDERS),
    wanted=st.sets(FOLDERS),
)
def test_what_may_be_loaded_is_never_dead(
    hashes: dict[str, str], released: set[str], wanted: set[str]
) -> None:
    checkpoints = {name: SavedCheckpoint(name, one, 1) for name, one in hashes.items()}

    dead = dead_archives(checkpoints, released, wanted)

    loadable = {one for name, one in hashes.items() if name in wanted or name not in released}
    assert dead.isdisjoint(loadable)
    assert dead | loadable == set(hashes.values())


def test_checkpoint_in_a_shared_folder_has_no_archive() -> None:
    checkpoint = TrialCheckpoint(step=4, attempt=1, number=1)

    assert (checkpoint.sha256, checkpoint.size_bytes) == ("", 0)
