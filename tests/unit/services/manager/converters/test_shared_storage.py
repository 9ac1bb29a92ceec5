import pytest

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_common.storage.shared_storage import LocalMount
from svc_manager.converters.shared_storage import storage_of

SECTION = {
    "storageType": "AzureBlob",
    "localMountPoint": "/mnt/here",
    "remoteMountPoint": "data",
    "localMounted": "nomount",
    "storageAccountName": "tuning",
    "containerName": "trials",
}


def config(section: dict[str, str]) -> config_pb2.ExperimentConfig:
    service = config_pb2.TrainingServiceConfig(
        platform="remote", options=to_value({"sharedStorage": section})
    )
    return config_pb2.ExperimentConfig(training_services=[service])


def test_section_of_the_first_platform_is_the_storage() -> None:
    secrets = {"sharedStorage.storageAccountKey": "s3cret"}

    storage = storage_of(config(SECTION), secrets)

    assert storage is not None
    assert (storage.local_mount, storage.account_key) == (LocalMount.NONE, "s3cret")


def test_experiment_without_the_section_has_none() -> None:
    local = config_pb2.TrainingServiceConfig(platform="local")

    assert storage_of(config_pb2.ExperimentConfig(training_services=[local])) is None
    assert storage_of(config_pb2.ExperimentConfig()) is None


def test_wrong_field_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"sharedStorage\.containerName must"):
        storage_of(config({**SECTION, "containerName": ""}))
