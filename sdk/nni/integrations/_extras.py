"""Error about a library that an integration needs and that is not installed."""


def missing_extra(name: str, library: str, extra: str) -> ImportError:
    """Return the ImportError of an `nni.integrations` module whose library is not installed.

    Args:
        name: public name of the integration.
        library: name of the library for people.
        extra: extra of `nni` that installs it.
    """
    return ImportError(f"nni.integrations.{name} needs {library}; run: pip install 'nni[{extra}]'")
