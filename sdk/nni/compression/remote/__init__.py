"""Compression jobs that run as experiments of the services: submit, follow, fetch.

Needs no torch: the steps run as trials.
"""

from nni.compression.remote.jobs import RemoteJob, list_jobs, submit_job
from nni.compression.remote.status import JobStatus, StepStatus

__all__ = ["JobStatus", "RemoteJob", "StepStatus", "list_jobs", "submit_job"]
