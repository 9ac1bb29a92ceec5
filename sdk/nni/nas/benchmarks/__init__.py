"""Documented import path for `nni.nas.benchmark.catalogue` and `nni.nas.benchmark.files`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.nas.benchmark.catalogue import load_benchmark
from nni.nas.benchmark.files import download_benchmark

__all__ = ["download_benchmark", "load_benchmark"]
