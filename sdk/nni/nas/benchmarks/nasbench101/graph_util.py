"""Documented import path for `nni.nas.benchmark.nasbench101.graph_util`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.nas.benchmark.nasbench101.graph_util import (
    hash_module,
    infer_num_vertices,
    nasbench_format_to_architecture_repr,
)

__all__ = ["hash_module", "infer_num_vertices", "nasbench_format_to_architecture_repr"]
