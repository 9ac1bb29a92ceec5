"""Use cases behind the gRPC API: algorithms, analyses and replays."""
