"""Calls of the client about remarks: note, tags and star of experiments and trials."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from nni.experiment.connection import Connection
from nni_proto.common.v1 import remarks_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as pb


class RemarkCalls(Connection):
    """Connection with the call that changes notes, tags and stars."""

    def change_remarks(
        self,
        experiment_id: str,
        trial_id: str = "",
        *,
        note: str | None = None,
        tags: Sequence[str] | None = None,
        starred: bool | None = None,
    ) -> remarks_pb2.Remarks:
        """Change those remarks on an experiment or a trial that are not `None`; return all.

        Args:
            experiment_id: the experiment; a stopped one, too.
            trial_id: the trial; empty: the experiment itself.
            note: replaces the note.
            tags: replace the tags.
            starred: whether it has a star.
        """
        request = pb.ChangeRemarksRequest(
            request_id=uuid.uuid4().hex,
            experiment_id=experiment_id,
            trial_id=trial_id,
            note=note,
            tags=None if tags is None else pb.TagList(tags=tags),
            starred=starred,
        )
        answer = self._call(lambda: self._experiments.ChangeRemarks, request)
        remarks: remarks_pb2.Remarks = answer.remarks
        return remarks
