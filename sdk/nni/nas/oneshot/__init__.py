"""One-shot search: one network whose weights all architectures share."""
