"""Access rules, and the table of which rule each RPC follows.

An RPC without a row needs `ADMIN`, so that none is open by omission; a test demands a row for
each. The rule of a REST route stands in the manager's route table.
"""

from typing import Final

from svc_common.access.roles import Role, Rule

READS: Final = Rule(Role.VIEWER, audited=False)
CHANGES: Final = Rule(Role.USER, audited=True)
RENEWS: Final = Rule(Role.USER, audited=False)
"""Prolongs what the caller holds, again and again: the line of how it got that is enough."""
ASKS_TO_RUN: Final = Rule(Role.USER, audited=True)
"""Starts user code, but changes no state."""
UPLOADS: Final = Rule(Role.USER, audited=True, agents=True)
"""Uploads or downloads blobs."""
ADMINISTERS: Final = Rule(Role.ADMIN, audited=True)

_EXPERIMENTS: Final = "/nni_proto.experiment.v1.ExperimentService/"
_HISTORIES: Final = "/nni_proto.experiment.v1.HistoryService/"
_STUDIES: Final = "/nni_proto.experiment.v1.StudyService/"
_BYTES: Final = "/nni_proto.bytes.v1.ByteService/"
_TRIALS: Final = "/nni_proto.trial.v1.TrialService/"
_ALGORITHMS: Final = "/nni_proto.tuning.v1.AlgorithmService/"
_COMPRESSIONS: Final = "/nni_proto.compression.v1.CompressionService/"
_EXPLORATIONS: Final = "/nni_proto.nas.v1.NasService/"
_ANALYSES: Final = "/nni_proto.tuning.v1.AnalysisService/"
_RUNNERS: Final = "/nni_proto.runner.v1.RunnerService/"
_POOLS: Final = "/nni_proto.runner.v1.PoolService/"
_INVITATIONS: Final = "/nni_proto.runner.v1.InvitationService/"

RULE_BY_METHOD: Final[dict[str, Rule]] = {
    f"{_EXPERIMENTS}CreateExperiment": CHANGES,
    f"{_EXPERIMENTS}ResumeExperiment": CHANGES,
    f"{_EXPERIMENTS}ViewExperiment": CHANGES,
    f"{_EXPERIMENTS}StopExperiment": CHANGES,
    f"{_EXPERIMENTS}GetExperiment": READS,
    f"{_EXPERIMENTS}ListExperiments": READS,
    f"{_EXPERIMENTS}DeleteExperiment": CHANGES,
    f"{_EXPERIMENTS}UpdateExperiment": CHANGES,
    f"{_EXPERIMENTS}ChangeRemarks": CHANGES,
    f"{_EXPERIMENTS}ImportData": CHANGES,
    f"{_EXPERIMENTS}ExportData": READS,
    f"{_EXPERIMENTS}FollowEvents": READS,
    f"{_EXPERIMENTS}FollowLogs": READS,
    f"{_EXPERIMENTS}WaitExperiment": READS,
    f"{_EXPERIMENTS}ListRunners": READS,
    f"{_EXPERIMENTS}DrainRunner": ADMINISTERS,
    f"{_EXPERIMENTS}DiagnoseServices": READS,
    f"{_HISTORIES}ReplayExperiment": ASKS_TO_RUN,
    # Takes everything away, code included: who did that must be known.
    f"{_HISTORIES}SaveExperiment": CHANGES,
    f"{_HISTORIES}LoadExperiment": CHANGES,
    f"{_STUDIES}AskTrial": CHANGES,
    f"{_STUDIES}TellTrial": CHANGES,
    f"{_STUDIES}RenewLeases": RENEWS,
    f"{_BYTES}DescribeStore": READS,
    f"{_BYTES}PrepareUpload": UPLOADS,
    f"{_BYTES}Upload": UPLOADS,
    f"{_BYTES}CompleteUpload": UPLOADS,
    f"{_BYTES}PrepareDownload": UPLOADS,
    f"{_BYTES}Download": UPLOADS,
    f"{_BYTES}GetUsage": READS,
    f"{_BYTES}CollectGarbage": ADMINISTERS,
    f"{_TRIALS}ListTrials": READS,
    f"{_TRIALS}GetTrial": READS,
    f"{_TRIALS}KillTrial": CHANGES,
    f"{_TRIALS}AddTrial": CHANGES,
    f"{_TRIALS}ListMetrics": READS,
    f"{_TRIALS}CountTrials": READS,
    f"{_TRIALS}ExplainTrial": READS,
    f"{_ALGORITHMS}ListAlgorithms": READS,
    f"{_ALGORITHMS}ValidateAlgorithms": ASKS_TO_RUN,
    f"{_ALGORITHMS}ReplaySuggestions": ASKS_TO_RUN,
    f"{_COMPRESSIONS}ValidateJob": READS,
    f"{_EXPLORATIONS}ValidateExploration": READS,
    f"{_EXPLORATIONS}GetExploration": READS,
    f"{_EXPLORATIONS}ExportTopModels": READS,
    f"{_ANALYSES}MeasureImportance": READS,
    f"{_ANALYSES}FindParetoFront": READS,
    f"{_ANALYSES}CheckConfigurations": READS,
    f"{_RUNNERS}DescribeRunner": READS,
    f"{_RUNNERS}ListRunnerTrials": READS,
    f"{_RUNNERS}DrainRunner": ADMINISTERS,
    f"{_RUNNERS}FollowLogs": READS,
    f"{_POOLS}CreatePool": ADMINISTERS,
    f"{_POOLS}UpdatePool": ADMINISTERS,
    f"{_POOLS}GetPool": READS,
    f"{_POOLS}ListPools": READS,
    f"{_POOLS}DrainPool": ADMINISTERS,
    f"{_POOLS}RemovePool": ADMINISTERS,
    f"{_POOLS}CleanPlatforms": ADMINISTERS,
    f"{_INVITATIONS}InviteRunner": ADMINISTERS,
    f"{_INVITATIONS}ListInvitations": READS,
    f"{_INVITATIONS}GetFront": READS,
    f"{_INVITATIONS}RevokeInvitations": ADMINISTERS,
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": READS,
}
"""By full name of the RPC."""

SERVED_BY_OTHERS: Final = frozenset({"nni_proto.tuning.v1.TuningService"})
"""Services of `proto/` that none of our processes offers: users do."""


def rule_of_method(method: str) -> Rule:
    """Return the access rule of an RPC; default: administration."""
    return RULE_BY_METHOD.get(method, ADMINISTERS)
