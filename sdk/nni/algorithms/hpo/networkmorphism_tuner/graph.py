"""Documented spelling of architectures; their home is `nni.hpo.tuners.network_morphism.graph`."""

from nni.hpo.tuners.network_morphism.graph import Graph, json_to_graph

__all__ = ["Graph", "json_to_graph"]
