"""Configurations of execution engines, chosen by name."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from nni.experiment.config.base import ConfigModel, Flag, Integer


class NamedConfig(ConfigModel):
    """Base of families of configurations; a call of a family constructs the member `name`.

    The base class of a family, called with the name of a member, constructs that member.
    """

    kind: ClassVar[str]
    """What the family is, for errors."""
    family: ClassVar[dict[str, type[NamedConfig]]]
    """Members by name, aliases included; set on the base class of the family."""

    def __new__(cls, **fields: Any) -> Self:  # noqa: ANN401 - pydantic checks them
        """Construct the member that is named, if the base class of the family is called."""
        if "family" not in vars(cls):
            return super().__new__(cls)
        member = cls.member(fields.get("name"))
        return super().__new__(member)  # type: ignore[return-value]  # a subclass, as in `object`

    @classmethod
    def member(cls, name: object) -> type[NamedConfig]:
        """Return the class of a family's member by name; raise ValueError if it is unknown.

        Args:
            name: of the member.

        Returns:
            Its class.

        Raises:
            ValueError: there is none of this name; the text lists those that exist.
        """
        if not isinstance(name, str) or name not in cls.family:
            known = ", ".join(repr(one) for one in cls.family)
            raise ValueError(f"{cls.kind} must be one of {known}; got {name!r}")
        return cls.family[name]

    @classmethod
    def of(cls, value: object) -> NamedConfig | None:
        """Convert a name or mapping to a configuration; return None and configurations as is.

        Args:
            value: name, mapping, configuration of the family, or None.

        Returns:
            The configuration; None for None.

        Raises:
            TypeError: the value is none of these.
            ValueError: the name is unknown.
        """
        match value:
            case None:
                return None
            case str():
                return cls.member(value)()
            case dict():
                return cls.member(value.get("name"))(**value)
            case NamedConfig() if isinstance(value, cls):
                return value
        raise TypeError(
            f"{cls.kind} must be a name or a {cls.__name__}, got {value!r:.200} of type "
            f"{type(value).__name__}"
        )


class ExecutionEngineConfig(NamedConfig):
    """Base of configurations of execution engines.

    Args:
        **fields: `name`, and the fields of the engine that it names.

    Raises:
        ValueError: no engine has this name.

    Examples:
        >>> from nni.nas.experiment.config import ExecutionEngineConfig
        >>> type(ExecutionEngineConfig(name="sequential")).__name__
        'SequentialEngineConfig'
        >>> ExecutionEngineConfig(name="foo")
        Traceback (most recent call last):
        ValueError: execution engine must be one of 'ts', 'cgo', 'sequential', 'service'; got 'foo'
    """

    kind: ClassVar[str] = "execution engine"
    family: ClassVar[dict[str, type[NamedConfig]]] = {}

    name: str
    """Name of the engine."""


class TrainingServiceEngineConfig(ExecutionEngineConfig):
    """Configuration of the engine whose models are trials of the platform.

    Examples:
        >>> from nni.nas.experiment.config import TrainingServiceEngineConfig
        >>> TrainingServiceEngineConfig().to_dict()
        {'name': 'ts'}
    """

    name: Literal["ts"] = "ts"
    """Name of the engine."""


class CgoEngineConfig(ExecutionEngineConfig):
    """Configuration of the engine that trains several models in one trial.

    Examples:
        >>> from nni.nas.experiment.config import CgoEngineConfig
        >>> CgoEngineConfig(max_concurrency_cgo=4).to_dict()["maxConcurrencyCgo"]
        4
    """

    name: Literal["cgo"] = "cgo"
    """Name of the engine."""
    training_service: Any = None
    """Configuration of the remote machines; not given: that of the experiment."""
    max_concurrency_cgo: Annotated[Integer, Field(ge=1)] | None = None
    """Models that are trained at once in one trial; not given: as many as there are devices."""
    batch_waiting_time: Annotated[Integer, Field(ge=0)] = 60
    """Seconds to wait for models that can be trained together."""


class ServiceEngineConfig(ExecutionEngineConfig):
    """Configuration of a search whose strategy runs in the NAS service.

    Models are trials of the platform. The search goes on when the process that started it ends, and
    after a crash of any process.

    Examples:
        >>> from nni.nas.experiment.config import ServiceEngineConfig
        >>> ServiceEngineConfig().to_dict()
        {'name': 'service'}
    """

    name: Literal["service"] = "service"
    """Name of the engine."""


class SequentialEngineConfig(ExecutionEngineConfig):
    """Configuration of the engine that evaluates models one after another in this process.

    Examples:
        >>> from nni.nas.experiment.config import SequentialEngineConfig
        >>> SequentialEngineConfig(max_model_count=3).max_model_count
        3
    """

    name: Literal["sequential"] = "sequential"
    """Name of the engine."""
    continue_on_failure: Flag = False
    """Whether a model that fails is logged, and the search goes on."""
    max_model_count: Annotated[Integer, Field(ge=0)] | None = None
    """Number of models; not given: `max_trial_number` of the experiment."""
    max_duration: Annotated[float, Field(ge=0)] | None = None
    """Seconds of evaluation; not given: `max_trial_duration` or `max_experiment_duration`."""


ExecutionEngineConfig.family.update(
    ts=TrainingServiceEngineConfig,
    cgo=CgoEngineConfig,
    sequential=SequentialEngineConfig,
    service=ServiceEngineConfig,
)
