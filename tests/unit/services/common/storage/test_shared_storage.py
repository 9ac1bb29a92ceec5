import pytest

from svc_common.errors import InvalidArgumentError
from svc_common.storage.shared_storage import (
    LocalMount,
    SharedStorage,
    StorageKind,
    azure_config,
    mount_command,
    shared_storage_of,
    unmount_command,
)

NFS = {
    "storageType": "NFS",
    "localMountPoint": "/mnt/here",
    "remoteMountPoint": "data",
    "localMounted": "usermount",
    "nfsServer": "10.0.0.9",
    "exportedDirectory": "/data",
}
AZURE = {
    "storageType": "AzureBlob",
    "localMountPoint": "/mnt/here",
    "remoteMountPoint": "/mnt/there",
    "localMounted": "nomount",
    "storageAccountName": "tuning",
    "containerName": "trials",
}


def parsed(section: dict[str, str], **secrets: str) -> SharedStorage:
    found = shared_storage_of({"sharedStorage": section}, secrets)
    assert found is not None
    return found


def test_section_of_nfs_is_parsed() -> None:
    assert parsed(NFS) == SharedStorage(
        StorageKind.NFS,
        "/mnt/here",
        "data",
        LocalMount.USER,
        nfs_server="10.0.0.9",
        exported_directory="/data",
    )


def test_key_of_azure_comes_from_the_secrets_and_does_not_show() -> None:
    secrets = {"sharedStorage.storageAccountKey": "s3cret"}
    storage = shared_storage_of({"sharedStorage": AZURE}, secrets)

    assert storage is not None
    assert storage.account_key == "s3cret"
    assert "s3cret" not in repr(storage)


def test_platform_without_a_section_has_no_storage() -> None:
    assert shared_storage_of({}, {}) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("storageType", "FTP"),
        ("localMounted", "me"),
        ("localMountPoint", "relative"),
        ("localMountPoint", "/a/../b"),
        ("remoteMountPoint", "../up"),
        ("nfsServer", ""),
        ("nfsServer", "-o bind"),
        ("exportedDirectory", "/a\nb"),
    ],
)
def test_error_names_the_field(field: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"sharedStorage\.{field} must"):
        parsed({**NFS, field: value})


def test_nfs_is_mounted_by_root_or_sudo() -> None:
    source = ("mount", "-t", "nfs", "10.0.0.9:/data", "/home/ann/data")

    def command(*, as_root: bool) -> tuple[str, ...]:
        return mount_command(parsed(NFS), "/home/ann/data", as_root=as_root, config_file="")

    assert command(as_root=True) == source
    assert command(as_root=False) == ("sudo", "-n", *source)
    assert unmount_command(parsed(NFS), "/d", as_root=False) == ("sudo", "-n", "umount", "/d")


def test_azure_is_mounted_with_a_file_that_has_the_key() -> None:
    secrets = {"sharedStorage.storageAccountKey": "it's"}
    storage = shared_storage_of({"sharedStorage": AZURE}, secrets)
    assert storage is not None

    command = mount_command(storage, "/mnt/there", as_root=False, config_file="/c.yaml")

    assert command == ("blobfuse2", "mount", "/mnt/there", "--config-file=/c.yaml")
    assert unmount_command(storage, "/m", as_root=True) == ("blobfuse2", "unmount", "/m")
    assert "  account-key: 'it''s'\n" in azure_config(storage, "/cache")


def test_azure_without_a_key_uses_the_identity_of_the_machine() -> None:
    assert "  mode: msi\n" in azure_config(parsed(AZURE), "/cache")
