"""Optuna's storages, for benchmarks that stand beside it."""

from __future__ import annotations

from typing import Any


def journal_file(path: str) -> Any:
    """Return a storage that appends to the file ``path``."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(path))
