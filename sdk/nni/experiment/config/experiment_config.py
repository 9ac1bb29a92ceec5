"""`ExperimentConfig`: the configuration of an experiment, schema v2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from nni.experiment.config.algorithm import AlgorithmConfig
from nni.experiment.config.base import paths_relative_to
from nni.experiment.config.experiment_fields import ExperimentFields
from nni.experiment.config.legacy import refuse_legacy
from nni.experiment.config.yaml_file import read_yaml, require_text_keys, to_yaml
from nni.experiment.errors import ConfigError, Problem


class ExperimentConfig(ExperimentFields):
    """Configuration of one experiment, schema v2.

    An object may be incomplete while it is being filled in; `validate` says what is missing.
    Two objects are equal if they describe the same experiment.

    Examples:
        >>> from nni.experiment import ExperimentConfig
        >>> config = ExperimentConfig(
        ...     search_space={"rate": {"_type": "loguniform", "_value": [0.001, 0.1]}},
        ...     trial_command="python3 train.py",
        ...     trial_concurrency=2,
        ...     training_service={"platform": "local"},
        ... )
        >>> config.tuner.name = "TPE"
        >>> config.validate()
        >>> config.trial_concurrency = 0
        Traceback (most recent call last):
        nni.experiment.errors.ConfigError: trial_concurrency must be ... 1, got 0
    """

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the configuration in a YAML file.

        Args:
            path: the file; relative paths in it count from its folder.

        Returns:
            The configuration; not yet validated as a whole.

        Raises:
            ConfigError: the file cannot be read, is no YAML, has the v1 schema, or a field is
                unknown or wrong.
        """
        file = Path(path).expanduser()
        document = read_yaml(file, "--config")
        try:
            _require_fields(document)
            with paths_relative_to(file.resolve().parent):
                return cls(**document)
        except ConfigError as error:
            raise error.within(str(path)) from error

    def save(self, path: str | Path) -> None:
        """Write a YAML file that `load` reads back to an equal object; paths are absolute.

        Args:
            path: the file, which is replaced.

        Raises:
            OSError: the file cannot be written.
        """
        Path(path).expanduser().write_text(to_yaml(self.to_dict()), "utf-8")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are given, as JSON values.

        Returns:
            Values by camelCase name, as in YAML; without sections that were never filled in.
        """
        fields = super().to_dict()
        for name in ("tuner", "assessor", "advisor"):
            section: AlgorithmConfig = getattr(self, name)
            if not section.is_given():
                fields.pop(name, None)
            elif not section.class_args:
                fields[name].pop("classArgs")
        for name in ("objectives", "constraints", "tags"):
            if not fields[name]:
                fields.pop(name)
        if self.search_space is not None:
            fields["searchSpace"] = self.search_space  # nulls inside it are the user's
        return fields

    def json(self, **options: Any) -> str:  # noqa: ANN401 - those of json.dumps
        """Return the configuration as JSON text.

        Args:
            **options: of `json.dumps`, such as `indent=2`.

        Returns:
            The text of `to_dict`.
        """
        return json.dumps(self.to_dict(), **options)

    def validate(self) -> None:  # type: ignore[override]  # documented name; pydantic's own is deprecated
        """Check everything that can be checked without the services.

        Raises:
            ConfigError: names every broken rule.
        """
        # Here, since the search spaces and algorithms that it knows take long to import.
        from nni.experiment.config.checks import check

        check(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExperimentConfig):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # it can be changed


def _require_fields(document: object) -> None:
    if not isinstance(document, dict):
        rule = "must be a mapping of fields to values"
        raise ConfigError([Problem("the file", rule, document)])
    refuse_legacy(document)
    require_text_keys(document)
