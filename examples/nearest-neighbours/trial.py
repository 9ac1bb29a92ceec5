"""Build one index of 5,000 vectors; report how many true neighbours it finds, and how fast."""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time

import numpy as np
from index import Index, distances

import nni

DEFAULTS = {"tree_type": "BKT", "trees": 1, "neighbours": 8, "max_check": 256}
VECTORS, DIMENSIONS, CLUSTERS, QUERIES = 5000, 32, 50, 100
NEAREST = 10
PENALTY = 0.05
"""Recall that a millisecond is worth."""


def data():
    """Return vectors in clusters, and queries from the same clusters."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(CLUSTERS, DIMENSIONS))
    rows = random.integers(CLUSTERS, size=VECTORS + QUERIES)
    found = centres[rows] + 0.6 * random.normal(size=(VECTORS + QUERIES, DIMENSIONS))
    return found[:VECTORS], found[VECTORS:]


def evaluate(parameters):
    chosen = DEFAULTS | parameters
    vectors, queries = data()
    max_check = int(chosen.pop("max_check"))
    index = Index(vectors, **chosen)

    began = time.process_time()
    answers = [index.search(query, NEAREST, max_check) for query in queries]
    latency_ms = 1000 * (time.process_time() - began) / QUERIES

    true = [np.argsort(distances(vectors, query))[:NEAREST] for query in queries]
    hits = sum(len(set(a) & set(t.tolist())) for a, t in zip(answers, true, strict=True))
    recall = hits / (NEAREST * QUERIES)
    return {
        "default": recall - PENALTY * latency_ms,
        "recall": recall,
        "latency_ms": latency_ms,
    }


if __name__ == "__main__":
    nni.report_final_result(evaluate(nni.get_next_parameter()))
