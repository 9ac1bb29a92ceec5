from pathlib import Path

import pytest

from nni.experiment.config import AzureBlobConfig, ExperimentConfig, NfsConfig
from nni.experiment.config.checks import check
from nni.experiment.conversion import config_from_proto, config_to_proto
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


NFS = {
    "storageType": "NFS",
    "localMountPoint": "/mnt/tuning",
    "remoteMountPoint": "tuning",
    "localMounted": "usermount",
    "nfsServer": "10.0.0.9",
    "exportedDirectory": "/data",
}
AZURE = {
    "storageType": "AzureBlob",
    "localMountPoint": "/mnt/tuning",
    "remoteMountPoint": "tuning",
    "localMounted": "nomount",
    "storageAccountName": "tuning",
    "storageAccountKey": "s3cret",
    "containerName": "trials",
}


def problems_of(config: ExperimentConfig) -> list[str]:
    """Return the problems of the section, as texts."""
    try:
        check(config)
    except ConfigError as error:
        return [str(one) for one in error.problems if one.field.startswith("sharedStorage")]
    return []


def broken(section: dict[str, str], platform: dict[str, object] | None = None) -> list[str]:
    """Return the problems of the section on a platform, remote by default."""
    service = platform or {
        "platform": "remote",
        "machineList": [{"host": "gpu-1", "user": "ann", "password": "p"}],
    }
    return problems_of(complete(training_service=service, shared_storage=section))


@pytest.mark.parametrize("section", [NFS, AZURE])
def test_complete_section_has_no_problem(section: dict[str, str]) -> None:
    assert not broken(section)


@pytest.mark.parametrize("name", [name for name in NFS if name != "storageType"])
def test_missing_field_is_named(name: str) -> None:
    section = {key: value for key, value in NFS.items() if key != name}

    assert [f"sharedStorage.{name} is required" in text for text in broken(section)] == [True]


@pytest.mark.claim("platform", 83)
def test_mount_point_within_the_code_is_refused(tmp_path: Path) -> None:
    section = {**NFS, "localMountPoint": str(tmp_path / "storage")}

    config = complete(
        training_service={"platform": "remote", "machineList": [{"host": "a", "user": "b"}]},
        shared_storage=section,
        trial_code_directory=tmp_path,
    )

    (problem,) = problems_of(config)
    assert "must be outside trialCodeDirectory" in problem


def test_platform_whose_agents_cannot_mount_names_the_remedy() -> None:
    (problem,) = broken(NFS, {"platform": "kubernetes", "image": "trials"})

    assert "mount it as one of the section's volumes" in problem


def test_agents_of_one_trial_are_refused() -> None:
    service = {
        "platform": "remote",
        "machineList": [{"host": "gpu-1", "user": "ann", "password": "p"}],
        "reuseMode": False,
    }

    assert broken(NFS, service) == [
        "sharedStorage needs agents that run trial after trial (set reuseMode: true)"
    ]


def test_section_travels_with_each_platform_and_comes_back() -> None:
    config = complete(
        training_service={"platform": "remote", "machineList": [{"host": "a", "user": "b"}]},
        shared_storage=AZURE,
    )

    message = config_to_proto(config)

    assert "sharedStorage.storageAccountKey" in message.training_services[0].secret_paths
    assert config_from_proto(message).to_dict()["sharedStorage"] == AZURE
