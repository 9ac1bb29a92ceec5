"""Secret values of platforms, taken out of a configuration."""

from typing import Any

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import from_value, to_value
from svc_common.pool_secrets import secrets_id_of
from svc_manager.converters.platform_secrets import put_secrets, required_secrets, take_secrets


def config_of(*sections: Any) -> config_pb2.ExperimentConfig:
    return config_pb2.ExperimentConfig(
        training_services=[
            config_pb2.TrainingServiceConfig(platform="p", options=to_value(section))
            for section in sections
        ]
    )


def test_values_whose_names_tell_that_they_are_secret_are_taken_at_any_depth() -> None:
    machines = [{"host": "a", "password": "one"}, {"host": "b", "sshPassphrase": "two"}]
    config = config_of({"machineList": machines, "token": "three"}, {"accessKeySecret": "four"})

    taken = take_secrets(config)

    assert taken == [
        {"machineList[0].password": "one", "machineList[1].sshPassphrase": "two", "token": "three"},
        {"accessKeySecret": "four"},
    ]
    assert [from_value(one.options) for one in config.training_services] == [
        {"machineList": [{"host": "a"}, {"host": "b"}]},
        {},
    ]


def test_secrets_of_a_job_of_openpai_are_secret_whatever_their_names_are() -> None:
    job = {"secrets": {"data": "one", "flag": True}, "taskRoles": {"a": {"secrets": "two"}}}
    config = config_of({"openpaiConfig": job, "secrets": [{"name": "of-kubernetes"}]})

    assert take_secrets(config) == [
        {"openpaiConfig.secrets.data": "one", "openpaiConfig.taskRoles.a.secrets": "two"}
    ]
    assert from_value(config.training_services[0].options) == {
        "openpaiConfig": {"secrets": {"flag": True}, "taskRoles": {"a": {}}},
        "secrets": [{"name": "of-kubernetes"}],
    }


def test_numbers_in_place_of_secret_texts_are_taken_as_their_texts() -> None:
    config = config_of({"password": 1234, "pin": 12.0, "token": 2**70, "secret": 0.5})

    assert take_secrets(config) == [
        {"password": "1234", "pin": "12", "token": str(2**70), "secret": "0.5"}
    ]
    assert from_value(config.training_services[0].options) == {}


def test_number_that_the_client_names_is_taken_and_measures_stay() -> None:
    options = {"tokenExpirationSeconds": 3600, "passwordLength": 8, "password": True, "secret": 0}
    config = config_of({**options, "words": 7})
    config.training_services[0].secret_paths.append("words")

    assert take_secrets(config) == [{"words": "7", "secret": "0"}]
    del options["secret"]
    assert from_value(config.training_services[0].options) == options


def test_values_that_the_client_names_are_taken_too() -> None:
    config = config_of({"login": {"words": "one", "user": "ann"}})
    config.training_services[0].secret_paths.extend(["login.words", "login.absent"])

    assert take_secrets(config) == [{"login.words": "one"}]
    assert list(config.training_services[0].secret_paths) == ["login.words"]


def test_variables_of_a_pod_are_secret_by_their_names_and_are_put_back() -> None:
    variables = [
        {"name": "WANDB_API_KEY", "value": "one"},
        {"name": "MODE", "value": "offline"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "value"}}},
    ]
    options = {"podTemplate": {"spec": {"containers": [{"name": "agent", "env": variables}]}}}
    config = config_of(options)

    [taken] = take_secrets(config)

    assert taken == {"podTemplate.spec.containers[0].env[0].value": "one"}
    put_secrets(config, "pool", {secrets_id_of("pool", 0): taken})
    assert from_value(config.training_services[0].options) == options


def test_names_that_tell_where_a_secret_is_or_whose_stay() -> None:
    options = {
        "sshKeyFile": "/home/ann/key",
        "hostKeyPolicy": "strict",
        "accessKeyId": "ab",
        "password": "",
    }
    config = config_of(options)

    assert take_secrets(config) == [{}]
    assert from_value(config.training_services[0].options) == options


def test_paths_stay_in_the_configuration_by_the_id_of_their_values() -> None:
    config = config_of({"token": "a"}, {"host": "b"}, {"password": "c"})
    take_secrets(config)

    required = list(required_secrets(config, "exp-a"))

    assert required == [("exp-a", "token"), ("exp-a_2", "password")]


def test_values_are_put_back_where_they_were_taken() -> None:
    sections = (
        {"machineList": [{"host": "a", "password": "one"}, {"host": "b"}], "token": "two"},
        {"login": {"secret": "three", "lab.org/token": "four", "of": {"a.b/password": "five"}}},
    )
    config = config_of(*sections)
    first, second = take_secrets(config)

    put_secrets(config, "exp-a", {"exp-a": first, "exp-a_1": second})

    assert [from_value(one.options) for one in config.training_services] == list(sections)
