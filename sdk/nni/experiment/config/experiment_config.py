"""`ExperimentConfig`: the configuration of an experiment, schema v2."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from nni.experiment.config.algorithm import AlgorithmConfig
from nni.experiment.config.base import paths_relative_to
from nni.experiment.config.experiment_fields import ExperimentFields
from nni.experiment.config.legacy import refuse_legacy
from nni.experiment.config.schema_v1 import convert_v1, is_v1
from nni.experiment.config.yaml_file import read_yaml, require_text_keys, to_yaml
from nni.experiment.errors import ConfigError, Problem


class ExperimentConfig(ExperimentFields):
    """Configuration of one experiment, schema v2.

    An object may be incomplete while it is being filled in; `validate` says what is missing.
    Two objects are equal if they describe the same experiment.

    A first argument without a name is the name of a platform such as `"local"`, or several of them,
    whose empty sections `training_service` then has.

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

    if TYPE_CHECKING:  # checkers derive a constructor without positional arguments from the fields

        def __init__(
            self,
            training_service_platform: str | Sequence[str] | None = None,
            **fields: Any,  # noqa: ANN401 - pydantic checks them
        ) -> None: ...

    @classmethod
    def load(cls, path: str | Path, *, warn: Callable[[str], None] | None = None) -> Self:
        """Return the configuration in a YAML file, of v1 converted; not validated as a whole.

        Args:
            path: the file; relative paths in it count from its folder.
            warn: receives the one warning about a file of schema v1, which names the fields that
                have no meaning any more; `None`: it is a `UserWarning`.

        Returns:
            The configuration; not yet validated as a whole.

        Raises:
            ConfigError: the file cannot be read, is no YAML, mixes both schemas, or a field is
                unknown or wrong.
        """
        file = Path(path).expanduser()
        document = read_yaml(file, "--config")
        try:
            fields, warning = _fields_of(document, str(path))
            with paths_relative_to(file.resolve().parent):
                config = cls(**fields)
        except ConfigError as error:
            raise error.within(str(path)) from error
        if warning and warn is not None:
            warn(warning)
        elif warning:
            warnings.warn(warning, UserWarning, stacklevel=2)
        return config

    def save(self, path: str | Path) -> None:
        """Write a YAML file that `load` reads back to an equal object; paths are absolute.

        Args:
            path: the file, which is replaced.

        Raises:
            OSError: the file cannot be written.
        """
        Path(path).expanduser().write_text(to_yaml(self.to_dict()), "utf-8")

    def to_dict(self) -> dict[str, Any]:
        """Return the given fields as JSON values; leave out empty sections and lists.

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
        for name in ("objectives", "constraints", "tags", "tuners", "includeIntermediateResults"):
            if not fields[name]:
                fields.pop(name)
        if self.search_space is not None:
            fields["searchSpace"] = self.search_space  # nulls inside it are the user's
        return fields

    def json(self, **options: Any) -> str:  # noqa: ANN401 - those of json.dumps
        """Return the fields of `to_dict` as JSON text, with options of `json.dumps`.

        Args:
            **options: of `json.dumps`, such as `indent=2`.

        Returns:
            The text of `to_dict`.
        """
        return json.dumps(self.to_dict(), **options)

    def validate(self) -> None:  # type: ignore[override]  # documented name; pydantic's own is deprecated
        """Raise ConfigError with all broken rules that can be checked without the services.

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


def _fields_of(document: object, source: str) -> tuple[dict[str, Any], str]:
    """Return the fields of a document in schema v2, and a warning if it was v1; or ConfigError."""
    if not isinstance(document, dict):
        rule = "must be a mapping of fields to values"
        raise ConfigError([Problem("the file", rule, document)])
    if is_v1(document):
        require_text_keys(document)
        converted = convert_v1(document)
        return converted.document, converted.warning(source)
    refuse_legacy(document)
    require_text_keys(document)
    return document, ""
