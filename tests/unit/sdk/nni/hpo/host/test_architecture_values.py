from nni.hpo.host.architecture_values import as_hyperparameters, is_architecture_space

SPACE = {
    "width": {"_type": "choice", "_value": [8, 16], "kind": "value"},
    "inputs": {"_type": "subset", "_value": [0, 1], "kind": "inputs", "chosen": 1},
    "rate": {"_type": "loguniform", "_value": [0.01, 1], "kind": "number"},
    "custom": {"_type": "other", "_value": ["Custom()"], "kind": "other"},
}
SAMPLE = {"width": 8, "inputs": [1], "rate": 0.5, "custom": "x"}


def test_only_spaces_whose_entries_have_a_kind_are_of_architectures() -> None:
    assert is_architecture_space(SPACE)
    assert not is_architecture_space({"lr": {"_type": "uniform", "_value": [0, 1]}})
    assert not is_architecture_space([1])


def test_choices_become_hyperparameters() -> None:
    space, trials = as_hyperparameters(SPACE, [({"sample": SAMPLE, "model": {}}, 0.5)])

    assert space == {
        "width": {"_type": "choice", "_value": ["8", "16"]},
        "inputs/0": {"_type": "choice", "_value": ["no", "yes"]},
        "inputs/1": {"_type": "choice", "_value": ["no", "yes"]},
        "rate": {"_type": "loguniform", "_value": [0.01, 1]},
    }
    assert trials == [({"width": "8", "inputs/0": "no", "inputs/1": "yes", "rate": 0.5}, 0.5)]


def test_trials_that_evaluate_no_model_of_the_space_are_left_out() -> None:
    _, trials = as_hyperparameters(SPACE, [({"lr": 1}, 0.5), ({"sample": {"width": 8}}, 0.5)])

    assert trials == []
