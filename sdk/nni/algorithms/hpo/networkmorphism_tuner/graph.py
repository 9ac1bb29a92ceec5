"""Documented import path for `nni.hpo.tuners.network_morphism.graph`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.network_morphism.graph import Graph, json_to_graph

__all__ = ["Graph", "json_to_graph"]
