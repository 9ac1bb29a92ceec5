"""Documented spelling of the benchmark; its home is the distribution `nni-benchmark`."""

try:
    from nni_benchmark import *  # noqa: F403
    from nni_benchmark import __all__ as __all__
except ModuleNotFoundError as error:
    if error.name != "nni_benchmark":
        raise
    raise ImportError(
        "nni.hpo.benchmark needs the package nni-benchmark: pip install 'nni[benchmark]'"
    ) from error
