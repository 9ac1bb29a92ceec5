"""Fields of NAS-Bench-101."""

from dataclasses import fields

from nni.nas.benchmark.nasbench101 import NB101_SCHEMA


def test_fields_are_those_of_the_specification() -> None:
    found = [
        " ".join(field.name for field in fields(one))
        for one in (NB101_SCHEMA.config, NB101_SCHEMA.stats, NB101_SCHEMA.intermediate)
    ]

    assert found == [
        "arch num_vertices hash num_epochs",
        "config train_acc valid_acc test_acc parameters training_time",
        "trial current_epoch train_acc valid_acc test_acc training_time",
    ]
