"""JSON records of the REST API: conversions from and to protobuf messages, and their schemas."""
