"""Installation that all fuzzing tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fuzzing.site import Site, fuzzed_site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Real services with experiments of every kind."""
    with fuzzed_site(tmp_path_factory.mktemp("fuzz")) as installation:
        yield installation
