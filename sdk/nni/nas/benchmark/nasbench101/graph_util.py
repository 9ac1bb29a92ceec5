"""Architectures of NAS-Bench-101 as graphs: conversion of formats, and a hash of isomorphic graphs.

Source: Ying et al., NAS-Bench-101: Towards Reproducible Neural Architecture Search, 2019, and the
published data, whose hashes these functions reproduce.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nni.nas.benchmark.nasbench101.constants import INPUT, LABELS, OUTPUT

if TYPE_CHECKING:
    import numpy as np

Architecture = Mapping[str, Any]
"""`op1`, `op2`, … to names of operations; `input1`, `input2`, … to lists of earlier vertices."""


def nasbench_format_to_architecture_repr(
    adjacency_matrix: Sequence[Sequence[int]] | np.ndarray[Any, Any], labeling: Sequence[str]
) -> tuple[int, dict[str, Any]]:
    """Return vertex count and architecture (`op…`, `input…`) of an adjacency matrix and labels.

    Args:
        adjacency_matrix: square, upper triangular; entry `[u][v]` is true if an edge leads from
            vertex u to vertex v.
        labeling: name of each vertex; the first is `input`, the last `output`.

    Returns:
        Number of vertices, and the architecture.

    Raises:
        ValueError: the matrix is not square, or the number of names differs.

    Examples:
        >>> nasbench_format_to_architecture_repr(
        ...     [[0, 1, 1], [0, 0, 1], [0, 0, 0]], ["input", "maxpool3x3", "output"]
        ... )
        (3, {'op1': 'maxpool3x3', 'input1': [0], 'input2': [0, 1]})
    """
    vertices = len(adjacency_matrix)
    if any(len(row) != vertices for row in adjacency_matrix) or len(labeling) != vertices:
        raise ValueError(
            "adjacency_matrix must be square with a row for each name of labeling, got "
            f"{vertices} rows and {len(labeling)} names"
        )
    architecture: dict[str, Any] = {
        f"op{vertex}": labeling[vertex] for vertex in range(1, vertices - 1)
    }
    for vertex in range(1, vertices):
        architecture[f"input{vertex}"] = [
            source for source in range(vertex) if adjacency_matrix[source][vertex]
        ]
    return vertices, architecture


def infer_num_vertices(architecture: Architecture) -> int:
    """Return the number of an architecture's vertices, with input and output, from its keys.

    Args:
        architecture: architecture in NNI's format.

    Raises:
        ValueError: it has no `input…`, or one with another end than a number.

    Examples:
        >>> infer_num_vertices({"op1": "maxpool3x3", "input1": [0], "input2": [0, 1]})
        3
    """
    numbers = [key.removeprefix("input") for key in architecture if key.startswith("input")]
    if not numbers or not all(number.isdecimal() for number in numbers):
        raise ValueError(f"architecture must have keys input1, input2, ..., got {[*architecture]}")
    return max(map(int, numbers)) + 1


def hash_module(architecture: Architecture, vertices: int) -> str:
    """Return the MD5 hash of a cell's graph, the same for isomorphic ones; raise if invalid.

    Args:
        architecture: architecture in NNI's format.
        vertices: number of its vertices.

    Returns:
        Hexadecimal MD5, the `hash` of the published data.

    Raises:
        ValueError: an operation is unknown, or an input is no earlier vertex.

    Examples:
        >>> hash_module({"input1": [0]}, 2)
        '043721b9c7fe8c5fad811d47d83132ec'
    """
    sources = [_sources(architecture, vertex) for vertex in range(vertices)]
    targets = [
        [vertex for vertex in range(vertices) if source in sources[vertex]]
        for source in range(vertices)
    ]
    labels = [
        LABELS[INPUT],
        *(_label(architecture, vertex) for vertex in range(1, vertices - 1)),
        LABELS[OUTPUT],
    ]
    hashes = [
        _md5(str((len(leaving), len(entering), label)))
        for leaving, entering, label in zip(targets, sources, labels, strict=True)
    ]
    for _ in range(vertices):
        hashes = [
            _md5(f"{_joined(hashes, entering)}|{_joined(hashes, leaving)}|{own}")
            for entering, leaving, own in zip(sources, targets, hashes, strict=True)
        ]
    return _md5(str(sorted(hashes)))


def _sources(architecture: Architecture, vertex: int) -> list[int]:
    found = architecture.get(f"input{vertex}", []) if vertex else []
    if not all(isinstance(source, int) and 0 <= source < vertex for source in found):
        raise ValueError(f"input{vertex} must list vertices from 0 to {vertex - 1}, got {found}")
    return list(found)


def _label(architecture: Architecture, vertex: int) -> int:
    name = architecture.get(f"op{vertex}")
    if name not in LABELS:
        raise ValueError(f"op{vertex} must be one of {', '.join(LABELS)}, got {name!r}")
    return LABELS[name]


def _joined(hashes: Sequence[str], vertices: Sequence[int]) -> str:
    return "".join(sorted(hashes[vertex] for vertex in vertices))


def _md5(text: str) -> str:
    # The published data names its graphs by MD5; no security rests on it.
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
