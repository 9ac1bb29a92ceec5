"""Approximate edit distance of architectures, in morphs.

Source: Jin, Song and Hu, Auto-Keras: An Efficient Neural Architecture Search System, KDD 2019,
section 3.1: the cost of making the layers alike plus that of making the connections alike.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from nni.hpo.arrays import Bools, Floats
from nni.hpo.tuners.network_morphism import layers as kinds
from nni.hpo.tuners.network_morphism.graph import Graph
from nni.hpo.tuners.network_morphism.morphs import main_nodes

Connection: TypeAlias = tuple[str, int, int]
"""Kind of the merge, number of layers before the start, and number of layers passed over."""


@dataclass(frozen=True, slots=True)
class Outline:
    """Features of an architecture that determine its edit distances."""

    dense: Bools
    """`(m,)`, per layer of the main path that has weights: whether it is a dense one."""
    widths: Floats
    """`(m,)`, their filters or units."""
    connections: tuple[Connection, ...]


def outline_of(graph: Graph) -> Outline:
    """Return kinds and widths of the layers on the main path, and the skip connections."""
    way = main_nodes(graph)
    passed, rank = {way[0]: 0}, 0
    dense, widths = [], []
    for node in way[1:]:
        layer = graph.layers[node - 1]
        if layer.width:
            rank += 1
            dense.append(layer.kind == kinds.DENSE)
            widths.append(float(layer.width))
        passed[node] = rank
    connections = []
    for node in way[1:]:
        layer = graph.layers[node - 1]
        for start in layer.inputs[1:]:
            while start not in passed:
                start = graph.layers[start - 1].inputs[0]  # noqa: PLW2901 - climbs to the main path
            connections.append((layer.kind, passed[start], passed[node] - passed[start]))
    return Outline(np.array(dense, dtype=bool), np.array(widths), tuple(sorted(connections)))


def distances(outline: Outline, others: Sequence[Outline]) -> Floats:
    """Return the edit distances `(n,)` of an architecture from n others; 0 from an equal one."""
    if not others:
        return np.empty(0)
    links = [_connection_distance(outline.connections, one.connections) for one in others]
    found: Floats = _layer_distances(outline, others) + np.array(links)
    return found


def _layer_distances(outline: Outline, others: Sequence[Outline]) -> Floats:
    """Return the alignment costs `(n,)` of the layers, by dynamic programming (Levenshtein)."""
    lengths = np.array([len(one.widths) for one in others])
    most = int(lengths.max())
    widths, dense = np.ones((len(others), most)), np.zeros((len(others), most), dtype=bool)
    for row, one in enumerate(others):
        widths[row, : len(one.widths)] = one.widths
        dense[row, : len(one.dense)] = one.dense
    steps = np.arange(most + 1.0)
    costs = np.tile(steps, (len(others), 1))
    for width, is_dense in zip(outline.widths, outline.dense, strict=True):
        change = np.abs(widths - width) / np.maximum(widths, width)
        change[dense != is_dense] = 1.0
        best = costs + 1.0  # the layer is deleted
        best[:, 1:] = np.minimum(best[:, 1:], costs[:, :-1] + change)
        # Layers of the others are deleted: each costs 1, from any start.
        costs = np.minimum.accumulate(best - steps, axis=1) + steps
    found: Floats = costs[np.arange(len(others)), lengths]
    return found


@lru_cache(maxsize=100_000)
def _connection_distance(left: tuple[Connection, ...], right: tuple[Connection, ...]) -> float:
    """Return the least cost of pairing the connections; each without a partner costs 1."""
    if left == right:
        return 0.0
    if len(left) > len(right):
        left, right = right, left
    costs = [[_difference(one, other) for other in right] for one in left]
    return least_assignment(costs) + len(right) - len(left)


def _difference(one: Connection, other: Connection) -> float:
    if one[0] != other[0]:
        return 1.0
    _, start, length = one
    _, other_start, other_length = other
    apart = abs(start - other_start) + abs(length - other_length)
    return apart / max(max(start, other_start) + max(length, other_length), 1)


def least_assignment(costs: Sequence[Sequence[float]]) -> float:
    """Return the least sum of one cost per row, each of another column.

    Args:
        costs: `(k, m)` with k <= m.

    Source: Kuhn, The Hungarian Method for the Assignment Problem, 1955, in the form that adds one
    row after the other along a cheapest augmenting path.
    """
    if not costs:
        return 0.0
    row_of = [-1] * (len(costs[0]) + 1)
    """Of each column; the last one stands for the row that is being added."""
    row_price, column_price = [0.0] * len(costs), [0.0] * len(row_of)
    for row in range(len(costs)):
        row_of[-1] = row
        column, came_from = _cheapest_path(costs, row_of, row_price, column_price)
        while column != len(costs[0]):
            row_of[column] = row_of[came_from[column]]
            column = came_from[column]
    return sum(costs[row][column] for column, row in enumerate(row_of[:-1]) if row >= 0)


def _cheapest_path(
    costs: Sequence[Sequence[float]],
    row_of: list[int],
    row_price: list[float],
    column_price: list[float],
) -> tuple[int, list[int]]:
    """Return the path's last, free column, and each column's predecessor; update the prices."""
    columns = len(costs[0])
    slack, came_from = [math.inf] * columns, [columns] * columns
    waiting, column, done = list(range(columns)), columns, [columns]
    while True:
        row = row_of[column]
        for other in waiting:
            price = costs[row][other] - row_price[row] - column_price[other]
            if price < slack[other]:
                slack[other], came_from[other] = price, column
        column = min(waiting, key=slack.__getitem__)
        step = slack[column]
        for other in done:
            row_price[row_of[other]] += step
            column_price[other] -= step
        waiting.remove(column)
        for other in waiting:
            slack[other] -= step
        if row_of[column] < 0:
            return column, came_from
        done.append(column)
