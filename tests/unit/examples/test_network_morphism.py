"""The example's search grows a network that learns the digits."""

from tests.support.example_searches import ExampleSearch


def test_networks_that_the_tuner_makes_learn_the_digits() -> None:
    found = ExampleSearch("network-morphism", "accuracies").run(trials=2)

    assert [record.status for record in found.trials] == ["SUCCEEDED"] * 2
    assert [len(record.intermediate) for record in found.trials] == [5, 5]
    assert found.trials[0].parameters != found.trials[1].parameters
    assert found.best_value > 0.9  # guessing gives 0.1
