"""Needs of pools, as the manager writes them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from nni_proto.experiment.v1 import config_pb2
from nni_proto.runner.v1 import pool_pb2
from nni_wire.pools import FRONT_HOST_OPTION
from nni_wire.values import from_value, to_value
from svc_manager.converters.pools import agent_time, need_template, need_to_bytes
from svc_manager.converters.scalars import settings_of
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.demand import ExperimentDemand
from svc_manager.domain.state import Experiment


def experiment(*sections: dict[str, Any], **fields: Any) -> Experiment:
    """Return an experiment on platforms with these options, the first one with secrets."""
    config = config_pb2.ExperimentConfig(
        training_services=[
            config_pb2.TrainingServiceConfig(platform=f"p{index}", options=to_value(section))
            for index, section in enumerate(sections)
        ],
        **fields,
    )
    config.training_services[0].secret_paths.append("password")
    return Experiment(
        id="ab12cd34",
        config=config.SerializeToString(),
        settings=settings_of("ab12cd34", config, 0),
    )


def test_need_names_platforms_in_order_with_options_and_secrets() -> None:
    need = need_template(experiment({"host": "a"}, {"host": "b"}, trial_gpu_number=2))

    assert (need.pool, need.experiment_id) == ("exp-ab12cd34", "ab12cd34")
    assert [from_value(one.options) for one in need.platforms] == [{"host": "a"}, {"host": "b"}]
    assert [one.platform for one in need.platforms] == ["p0", "p1"]
    assert [one.secrets_id for one in need.platforms] == ["exp-ab12cd34", ""]
    assert need.gpus_per_trial == 2


def test_host_of_the_manager_is_an_option_of_each_platform() -> None:
    need = need_template(experiment({"host": "a"}, {}, nni_manager_ip="10.0.0.7"))

    assert [from_value(one.options) for one in need.platforms] == [
        {"host": "a", FRONT_HOST_OPTION: "10.0.0.7"},
        {FRONT_HOST_OPTION: "10.0.0.7"},
    ]


def test_need_without_gpus_leaves_them_unset() -> None:
    assert not need_template(experiment({})).HasField("gpus_per_trial")


def test_message_has_the_limits_of_the_demand() -> None:
    template = need_template(experiment({"maxAgents": 2}))
    demand = ExperimentDemand(1, 2, 4, False, AgentLimits(max_agents=8, max_agent_time_ms=1_500))

    limits = pool_pb2.PoolNeed.FromString(need_to_bytes(template, demand, 17)).limits

    assert (limits.max_agents, limits.max_agent_time.ToMilliseconds()) == (8, 1_500)
    assert not limits.HasField("idle")


def test_message_has_the_present_demand_and_its_position_in_the_log() -> None:
    template = need_template(experiment({}))
    need_to_bytes(template, ExperimentDemand(5, 6, 7, closed=True), 1)

    payload = need_to_bytes(template, ExperimentDemand(1, 2, 4, closed=False), 17)

    need = pool_pb2.PoolNeed.FromString(payload)
    assert (need.waiting_count, need.running_count, need.concurrency) == (1, 2, 4)
    assert (need.closed, need.log_sequence) == (False, 17)


def test_need_for_a_shared_pool_names_the_pool_only() -> None:
    config = config_pb2.ExperimentConfig(trial_gpu_number=1)
    config.training_services.add(platform="pool", options=to_value({"name": "gpus"}))
    used = Experiment(
        id="ab12cd34",
        config=config.SerializeToString(),
        settings=settings_of("ab12cd34", config, 0),
    )

    need = need_template(used)

    assert need == pool_pb2.PoolNeed(pool="gpus", experiment_id="ab12cd34", gpus_per_trial=1)
    published = need_to_bytes(need, ExperimentDemand(1, 0, 1, closed=False), 3)
    assert not pool_pb2.PoolNeed.FromString(published).HasField("limits")


def test_time_of_agents_that_run_counts_until_now_and_never_backwards() -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    state = pool_pb2.PoolState()
    state.ended_agent_time.FromSeconds(60)
    for start in (now - timedelta(seconds=30), now + timedelta(hours=1)):
        state.agents.add().started_at.FromDatetime(start)
    state.agents.add()

    assert agent_time(state, now) == timedelta(seconds=90)
