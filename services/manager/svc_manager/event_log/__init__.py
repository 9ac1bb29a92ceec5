"""Event logs of experiments, with their snapshots, summaries and tombstones."""
