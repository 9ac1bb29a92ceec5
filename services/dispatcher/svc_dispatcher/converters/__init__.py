"""Pure conversions between protobuf messages and domain values."""
