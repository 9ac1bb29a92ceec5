"""Quotas of the byte store."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quota:
    """Size limits of the byte store: of the installation and of one experiment."""

    installation_bytes: int
    """Limit of all blobs; 0: no limit."""
    experiment_bytes: int
    """Limit of the blobs of one experiment; 0: no limit."""


def excess(
    quota: Quota,
    *,
    size_bytes: int,
    installation_used_bytes: int,
    experiment_id: str,
    experiment_used_bytes: int,
) -> str:
    """Return a text on the quota that an upload would exceed, and its remedy; empty: none.

    Args:
        quota: the limits.
        size_bytes: size of the upload.
        installation_used_bytes: size of all stored blobs.
        experiment_id: experiment of the upload; empty: none.
        experiment_used_bytes: size of the blobs of that experiment.
    """
    limit = quota.experiment_bytes
    if experiment_id and limit and experiment_used_bytes + size_bytes > limit:
        return (
            f"the byte store takes at most {sized(limit)} for an experiment, {experiment_id} uses "
            f"{sized(experiment_used_bytes)} and {sized(size_bytes)} more are to come; set "
            f"NNI_EXPERIMENT_QUOTA_BYTES of the manager higher, or save less"
        )
    limit = quota.installation_bytes
    if limit and installation_used_bytes + size_bytes > limit:
        return (
            f"the byte store takes at most {sized(limit)}, {sized(installation_used_bytes)} are "
            f"used and {sized(size_bytes)} more are to come; delete experiments that are over, run "
            f"'nnictl storage clean', or set NNI_QUOTA_BYTES of the manager higher"
        )
    return ""


def sized(size_bytes: int) -> str:
    """Return a number of bytes as text in decimal units: `812 bytes`, `4.5 MB`."""
    size = float(size_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:  # noqa: PLR2004 - a step of these units
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
