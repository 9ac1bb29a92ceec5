"""Classes of the sections of platforms that other packages add."""

from __future__ import annotations

from nni.experiment.config.training_service_base import TrainingServiceConfig
from nni.experiment.errors import ConfigError, Problem


def own_platform_class(platform: str) -> type[TrainingServiceConfig] | None:
    """Return a package's class for a platform's section, None without; ConfigError if broken.

    Raises:
        ConfigError: the package is broken: a module is missing, or the class is no
            `TrainingServiceConfig` with the platform's name as default of its field `platform`.
    """
    # Of another distribution: imported only for a platform that NNI does not have.
    from nni_wire.own_platforms import PlatformEntry, load_own_platform, load_reference

    repair = "repair its package"
    try:
        entry = load_own_platform(platform)
        if entry is None:
            return None
        found = load_reference(entry.config) if isinstance(entry, PlatformEntry) else None
    except ImportError as error:
        problem = Problem("platform", f"cannot be imported: {error}", platform, repair)
        raise ConfigError([problem]) from error
    if not isinstance(found, type) or not issubclass(found, TrainingServiceConfig):
        rule = "must have a PlatformEntry whose config is a TrainingServiceConfig"
        raise ConfigError([Problem("platform", rule, platform, repair)])
    if found.model_fields["platform"].default != platform:
        rule = f"must be the default of the field platform of {found.__name__}"
        raise ConfigError([Problem("platform", rule, platform, repair)])
    return found
