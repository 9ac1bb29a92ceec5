"""Converter of the shared storage in the configuration of an experiment."""

from collections.abc import Mapping

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import from_value
from svc_common.storage.shared_storage import SharedStorage, shared_storage_of


def storage_of(
    config: config_pb2.ExperimentConfig, secret_values: Mapping[str, str] | None = None
) -> SharedStorage | None:
    """Parse the shared storage in the first platform's options; None: there is none; or raise.

    Args:
        config: of the experiment.
        secret_values: of its first platform, by path; None: the storage needs none.

    Raises:
        InvalidArgumentError: a field is missing, or breaks a rule.
    """
    if not config.training_services:
        return None
    options = from_value(config.training_services[0].options)
    return shared_storage_of(options if isinstance(options, Mapping) else {}, secret_values or {})
