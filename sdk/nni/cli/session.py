"""Opening of a client of the manager, and selection of the experiment, for most commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nni.cli import selection
from nni.experiment.endpoint import endpoint_path, read_endpoint
from nni.experiment.errors import WrongStateError

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient


def services_wanted() -> bool:
    """Return whether the services are up, or were killed and are to be restarted."""
    return read_endpoint() is not None or endpoint_path().exists()


@contextmanager
def manager(*, start: bool = False) -> Iterator[ManagerClient]:
    """Yield a client; start services if they crashed, or on ``start``; WrongStateError if down.

    Services that died with experiments running are brought up again.

    Args:
        start: bring the services up even if nothing runs.

    Raises:
        WrongStateError: nothing runs.
    """
    from nni.experiment.client import ManagerClient
    from nni.experiment.local_shape import ensure_local_shape

    if not start and not services_wanted():
        raise WrongStateError("there is no experiment running; the services are not up")
    with ManagerClient(ensure_local_shape()) as client:
        yield client


@contextmanager
def experiment(word: str | None) -> Iterator[tuple[ManagerClient, str]]:
    """Yield a client of the manager, and the id of the experiment that ``word`` means.

    Stopped experiments count only if they are named.

    Raises:
        WrongStateError: nothing runs, or several experiments do and none is named.
        NotFoundError: the word means none, or several.
    """
    with manager(start=word is not None) as client:
        running = [found.id for found in client.experiments()]
        known = running
        if word is not None and word not in running:
            known = [found.id for found in client.experiments(include_stopped=True)]
        yield client, selection.one(word, running, known)
