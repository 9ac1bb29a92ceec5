"""Files of the secret values of pools."""

from pathlib import Path

import pytest

from svc_common.errors import InvalidArgumentError
from svc_common.pool_secrets import POOL_SECRETS_FOLDER, PoolSecrets, secrets_id_of

VALUES = {"machineList[0].password": "s3cret ä"}


def test_values_are_read_as_they_were_written(tmp_path: Path) -> None:
    PoolSecrets(tmp_path).write("exp-a", VALUES)

    assert PoolSecrets(tmp_path).read("exp-a") == VALUES


def test_only_their_owner_may_read_them(tmp_path: Path) -> None:
    PoolSecrets(tmp_path).write("exp-a", VALUES)

    folder = tmp_path / POOL_SECRETS_FOLDER
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]


def test_unknown_id_has_no_values(tmp_path: Path) -> None:
    assert PoolSecrets(tmp_path).read("exp-a") == {}


def test_removal_of_a_pool_leaves_those_of_others(tmp_path: Path) -> None:
    store = PoolSecrets(tmp_path)
    ids = [secrets_id_of("exp-a", 0), secrets_id_of("exp-a", 1), secrets_id_of("exp-a", 0, 7)]
    for secrets_id in (*ids, "exp-ab"):
        store.write(secrets_id, VALUES)

    store.remove_pool("exp-a")
    store.remove_pool("exp-a")

    assert [path.name for path in (tmp_path / POOL_SECRETS_FOLDER).iterdir()] == ["exp-ab.json"]


def test_damaged_file_is_named_without_its_content(tmp_path: Path) -> None:
    store = PoolSecrets(tmp_path)
    store.write("exp-a", VALUES)
    path = tmp_path / POOL_SECRETS_FOLDER / "exp-a.json"
    path.write_text('{"machineList[0].password": "s3cret')

    with pytest.raises(InvalidArgumentError, match=r"exp-a\.json") as raised:
        store.read("exp-a")

    assert "s3cret" not in str(raised.value)


def test_id_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="secrets_id"):
        PoolSecrets(tmp_path).write("../a", VALUES)
