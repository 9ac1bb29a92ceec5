"""Selection of experiments by id, prefix, port or state; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nni.experiment.errors import NotFoundError, RefusedError, WrongStateError


def one(word: str | None, running: Sequence[str], known: Sequence[str]) -> str:
    """Return the id that ``word`` is or begins, running ones first; None: the only running one.

    Args:
        word: what the user wrote; `None`: the one experiment that is running.
        running: ids of experiments that are not stopped.
        known: ids of all experiments.

    Raises:
        WrongStateError: nothing was written and none is running, or several are.
        NotFoundError: nothing or too much starts with ``word``.
    """
    if word is None:
        return _the_running_one(running)
    if word in known or word in running:
        return word
    return _by_prefix(word, running, known)


def _the_running_one(running: Sequence[str]) -> str:
    if not running:
        raise WrongStateError("there is no experiment running; name one by its id")
    if len(running) > 1:
        raise WrongStateError(
            "there are several experiments running, name one by its id: " + " ".join(running)
        )
    return running[0]


def _by_prefix(word: str, running: Sequence[str], known: Sequence[str]) -> str:
    for ids in (running, known):
        found = [id_ for id_ in ids if id_.startswith(word)]
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFoundError(
                f"several experiments start with {word!r}, name one by its id: " + " ".join(found)
            )
    raise NotFoundError(f"there is no experiment {word!r}; see: nnictl experiment list --all")


def to_stop(
    word: str | None,
    *,
    port: int | None,
    everything: bool,
    running: Mapping[str, int],
) -> list[str]:
    """Return the ids that `nnictl stop` stops, by word, port or all; raise if none fits.

    Args:
        word: an id, the start of one, or a start followed by `*` for all with it.
        port: the one whose page is open on this port.
        everything: all that run.
        running: the port (0: none) of every experiment that runs.

    Raises:
        RefusedError: more than one way to choose is used.
        WrongStateError: none runs, or several do and none was chosen.
        NotFoundError: none that runs fits.
    """
    if (word is not None) + (port is not None) + everything > 1:
        raise RefusedError("an id, --port and --all exclude each other; give one of them")
    ids = list(running)
    if everything:
        return ids
    if port is not None:
        found = [id_ for id_, open_port in running.items() if open_port == port]
        if not found:
            raise NotFoundError(f"there is no experiment running on port {port}")
        return found
    if word is not None and word.endswith("*"):
        found = [id_ for id_ in ids if id_.startswith(word[:-1])]
        if not found:
            raise NotFoundError(f"there is no experiment running whose id starts with {word[:-1]}")
        return found
    if word is None:
        return [_the_running_one(ids)]
    return [one_running(word, ids)]


def one_running(word: str, running: Sequence[str]) -> str:
    """Return the one running id that is ``word`` or starts with it; raise NotFoundError otherwise.

    Raises:
        NotFoundError: none that runs has this id, and not exactly one starts with it.
    """
    if word in running:
        return word
    found = [id_ for id_ in running if id_.startswith(word)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFoundError(
            f"several experiments start with {word!r}, none was stopped: " + " ".join(found)
        )
    raise NotFoundError(f"there is no experiment running with the id {word!r}")
