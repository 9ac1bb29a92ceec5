import pytest

from nni.experiment.config import AzureBlobConfig, NfsConfig
from nni.experiment.errors import ConfigError
from tests.support.experiment_configs import complete


@pytest.mark.parametrize(
    ("section", "kind"),
    [
        ({"storageType": "NFS", "nfsServer": "10.0.0.9"}, NfsConfig),
        ({"storage_type": "AzureBlob", "container_name": "trials"}, AzureBlobConfig),
    ],
)
def test_section_becomes_the_class_of_its_type(section: dict[str, str], kind: type) -> None:
    assert isinstance(complete(shared_storage=section).shared_storage, kind)


def test_fields_of_the_kind_are_saved() -> None:
    config = complete(shared_storage=NfsConfig(nfs_server="10.0.0.9", local_mounted="nomount"))

    assert config.to_dict()["sharedStorage"] == {
        "storageType": "NFS",
        "nfsServer": "10.0.0.9",
        "localMounted": "nomount",
    }


@pytest.mark.parametrize("section", [{"storageType": "FTP"}, {}])
def test_unknown_type_names_the_known_ones(section: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"storageType must be one of NFS, AzureBlob"):
        complete(shared_storage=section)


def test_key_of_a_storage_account_does_not_show() -> None:
    assert "s3cret" not in repr(AzureBlobConfig(storage_account_key="s3cret"))
