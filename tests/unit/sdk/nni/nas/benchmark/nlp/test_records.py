"""Fields of the NLP benchmark."""

from dataclasses import fields

from nni.nas.benchmark.nlp import NLP_SCHEMA


def test_fields_are_those_of_the_specification() -> None:
    found = [
        " ".join(field.name for field in fields(one))
        for one in (NLP_SCHEMA.config, NLP_SCHEMA.stats, NLP_SCHEMA.intermediate)
    ]

    assert found == [
        "arch dataset",
        "config train_loss val_loss test_loss training_time",
        "trial current_epoch train_loss val_loss test_loss training_time",
    ]
