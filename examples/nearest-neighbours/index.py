"""Approximate nearest neighbours: trees find where to begin, a graph of neighbours leads on."""

import heapq

import numpy as np

LEAF = 32
"""Most vectors in a leaf of a tree."""
BRANCHES = 4
"""Of a node of a k-means tree."""
ROUNDS = 4
"""Rounds of k-means."""


def distances(vectors, query):
    """Return the squared distance of each vector from the query."""
    return ((vectors - query) ** 2).sum(axis=-1)


def divide_in_half(vectors, random):
    """Return centres and numbers of parts: below and above the median of a wide dimension."""
    widest = np.argsort(vectors.var(axis=0))[-4:]
    values = vectors[:, random.choice(widest)]
    upper = values > np.median(values)
    return upper.astype(int)


def divide_by_k_means(vectors, random):
    centres = vectors[random.choice(len(vectors), BRANCHES, replace=False)]
    for _ in range(ROUNDS):
        parts = distances(vectors[:, None], centres).argmin(axis=1)
        centres = np.array(
            [
                vectors[parts == part].mean(axis=0) if (parts == part).any() else centre
                for part, centre in enumerate(centres)
            ]
        )
    return parts


DIVISIONS = {"KDT": divide_in_half, "BKT": divide_by_k_means}


class Index:
    """Index of vectors; the same arguments and seed build the same one.

    Args:
        vectors: `(n, dimensions)`.
        tree_type: KDT divides in half, BKT by k-means, which takes longer.
        trees: number of trees.
        neighbours: most edges of a vector in the graph.
    """

    def __init__(self, vectors, tree_type, trees, neighbours, seed=0):
        self.vectors = vectors
        random = np.random.default_rng(seed)
        divide = DIVISIONS[tree_type]
        leaves = [leaf for _ in range(trees) for leaf in self._leaves(divide, random)]
        self.entries = np.array([leaf[0] for leaf in leaves])  # a vector of each leaf
        self.graph = self._graph(leaves, neighbours)

    def _leaves(self, divide, random):
        waiting, leaves = [np.arange(len(self.vectors))], []
        while waiting:
            rows = waiting.pop()
            if len(rows) <= LEAF:
                leaves.append(rows)
                continue
            parts = divide(self.vectors[rows], random)
            divided = [rows[parts == part] for part in range(parts.max() + 1)]
            divided = [part for part in divided if len(part)]
            if len(divided) == 1:  # vectors that are all the same
                divided = np.array_split(rows, 2)
            waiting += divided
        return leaves

    def _graph(self, leaves, count):
        """Connect vectors that are near to each other and in the same leaf of some tree."""
        near = [{} for _ in self.vectors]
        for rows in leaves:
            found = self.vectors[rows]
            between = distances(found[:, None], found)
            for row, others in zip(rows, between, strict=True):
                near[row].update(zip(rows.tolist(), others.tolist(), strict=True))
        for row, known in enumerate(near):
            known.pop(row)
        return [np.array(heapq.nsmallest(count, known, known.get), dtype=int) for known in near]

    def search(self, query, count, max_check):
        """Return the nearest vectors that are found with about `max_check` distances."""
        begin = self.entries[:: max(1, len(self.entries) // (max_check // 4))]
        begin = np.unique(begin)
        known = set(begin.tolist())
        found = list(
            zip(distances(self.vectors[begin], query).tolist(), begin.tolist(), strict=True)
        )
        waiting = list(found)
        heapq.heapify(waiting)
        while waiting and len(found) < max_check:
            _distance, row = heapq.heappop(waiting)
            fresh = [one for one in self.graph[row].tolist() if one not in known]
            if not fresh:
                continue
            known.update(fresh)
            for item in zip(distances(self.vectors[fresh], query).tolist(), fresh, strict=True):
                found.append(item)
                heapq.heappush(waiting, item)
        return [row for _distance, row in heapq.nsmallest(count, found)]
