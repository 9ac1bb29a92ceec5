"""Configuration of the platform `openpai`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from nni.experiment.config.base import AbsolutePath, PositiveInteger, SizeText, Text
from nni.experiment.config.training_service_base import JobPoolConfig
from nni.experiment.config.yaml_file import read_yaml
from nni.experiment.errors import ConfigError, Problem


class OpenpaiConfig(JobPoolConfig):
    """Configuration of an OpenPAI cluster, whose jobs run agents for several trials each.

    Examples:
        >>> from nni.experiment import OpenpaiConfig
        >>> service = OpenpaiConfig(host="pai.example.org", username="ann", trial_memory_size="8gb")
        >>> service.reuse_mode
        True
    """

    platform: Literal["openpai"] = "openpai"
    """Name of the platform."""
    host: Text | None = None
    """Address of the cluster's portal; without `http://` it is reached by HTTPS."""
    username: Text | None = None
    """Name of the user."""
    token: Text | None = Field(default=None, repr=False)
    """Token of the user."""
    trial_cpu_number: PositiveInteger | None = None
    """CPU cores of a trial; required unless the job is given."""
    trial_memory_size: SizeText | None = None
    """Memory of a trial, such as `8gb`; required unless the job is given."""
    storage_config_name: Text | None = None
    """Name of a storage in OpenPAI that the containers mount; not given: none."""
    docker_image: Text | None = None
    """Image with NNI's trial-runner; not given: the trial-runner of this version."""
    virtual_cluster: Text | None = None
    """Virtual cluster whose resources are used; not given: the default one."""
    local_storage_mount_point: AbsolutePath | None = None
    """Folder at which this machine mounts the storage; not used: code travels through NNI."""
    container_storage_mount_point: Text | None = None
    """Folder at which trials find the storage; not used, as OpenPAI decides."""
    openpai_config: dict[str, Any] | None = None
    """Job in OpenPAI's own form; excludes `openpai_config_file`."""
    openpai_config_file: AbsolutePath | None = None
    """File with the job in OpenPAI's own form."""

    def sent_fields(self) -> dict[str, Any]:
        """Return the fields for the services; openpaiConfigFile is replaced by its content.

        Returns:
            Values by camelCase name, see `to_dict`.

        Raises:
            ConfigError: the file cannot be read, or is no mapping.
        """
        fields = self.to_dict()
        if self.openpai_config_file is not None and self.openpai_config is None:
            fields["openpaiConfig"] = self._read_job(self.openpai_config_file)
            del fields["openpaiConfigFile"]
        return fields

    def _read_job(self, file: AbsolutePath) -> dict[str, Any]:
        content = read_yaml(file, "openpaiConfigFile")
        if isinstance(content, dict):
            return content
        rule = "must be a job in OpenPAI's form"
        raise ConfigError([Problem("openpaiConfigFile", rule, str(file))])

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return problems of login and resources, and of a job given twice or unreadable."""
        problems = super().problems(field, trial_gpu_number)
        problems += [
            Problem(f"{field}.{name}", "must be given")
            for name, value in (("host", self.host), ("username", self.username))
            if not value
        ]
        if self.openpai_config_file is None:
            return [*problems, *self._resource_problems(field)]
        if self.openpai_config is not None:
            rule = "must not be given with openpaiConfig"
            problems.append(Problem(f"{field}.openpaiConfigFile", rule))
            return problems
        try:
            self._read_job(self.openpai_config_file)
        except ConfigError as error:
            problems += [one.moved(field) for one in error.problems]
        return problems

    def _resource_problems(self, field: str) -> list[Problem]:
        """Return a problem for each resource that neither the section nor a job gives."""
        if self.openpai_config is not None:
            return []
        given = {
            "trialCpuNumber": self.trial_cpu_number,
            "trialMemorySize": self.trial_memory_size,
        }
        rule = "must be given, or openpaiConfig or openpaiConfigFile"
        return [Problem(f"{field}.{name}", rule) for name, value in given.items() if value is None]
