"""Secret values of a platform's section, put back where they were taken out of it."""

from collections.abc import Mapping


def with_secrets(value: object, path: str, secrets: Mapping[str, str]) -> object:
    """Return a copy of a section's option with its secret values put back by path.

    Args:
        value: of the option, without secret values.
        path: of the option within the section.
        secrets: secret values by path within the section.
    """
    if isinstance(value, list | tuple):
        return [with_secrets(one, f"{path}[{index}]", secrets) for index, one in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    whole = {key: with_secrets(inner, f"{path}.{key}", secrets) for key, inner in value.items()}
    # A key may contain dots; what is deeper begins with a key that is still here.
    deeper = tuple(start for key in value for start in (f"{key}.", f"{key}["))
    start = f"{path}."
    names = [full.removeprefix(start) for full in secrets if full.startswith(start)]
    return whole | {
        name: secrets[f"{start}{name}"] for name in names if not name.startswith(deeper)
    }
