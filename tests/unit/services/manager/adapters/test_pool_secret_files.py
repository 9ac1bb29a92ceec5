"""Secret values of platforms in files."""

from pathlib import Path

import pytest

from svc_common.errors import FailedPreconditionError
from svc_common.pool_secrets import POOL_SECRETS_FOLDER
from svc_manager.adapters.pool_secret_files import PoolSecretFiles


async def test_values_are_kept_until_their_pool_is_removed(tmp_path: Path) -> None:
    store = PoolSecretFiles(tmp_path)
    await store.write("exp-a", {"password": "one"})
    before = await store.read("exp-a")

    await store.remove_pool("exp-a")

    assert (before, await store.read("exp-a")) == ({"password": "one"}, {})


async def test_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / POOL_SECRETS_FOLDER).touch()

    with pytest.raises(FailedPreconditionError, match=POOL_SECRETS_FOLDER):
        await PoolSecretFiles(tmp_path).write("exp-a", {"password": "one"})
