from typing import Any

import pytest

tune = pytest.importorskip("ray.tune")

from nni.hpo.space.parser import parse_space  # noqa: E402
from nni.integrations._ray_spaces import RaySpace  # noqa: E402 - needs the library


@pytest.mark.parametrize(
    ("domain", "kind", "values"),
    [
        (tune.uniform(0, 2), "uniform", [0, 2]),
        (tune.quniform(0, 2, 0.5), "quniform", [0, 2, 0.5]),
        (tune.loguniform(1e-4, 1), "loguniform", [1e-4, 1]),
        (tune.qloguniform(1e-3, 1, 1e-3), "qloguniform", [1e-3, 1, 1e-3]),
        (tune.randn(1, 2), "normal", [1, 2]),
        (tune.qrandn(1, 2, 0.5), "qnormal", [1, 2, 0.5]),
        (tune.randint(1, 9), "randint", [1, 9]),
        (tune.qrandint(2, 8, 2), "quniform", [2, 8, 2]),
        (tune.qrandint(2, 8, 1), "randint", [2, 9]),
        (tune.lograndint(1, 65), "qloguniform", [1, 64, 1]),
        (tune.qlograndint(4, 64, 4), "qloguniform", [4, 64, 4]),
        (tune.choice(["a", None, (1, 2)]), "choice", [0, 1, 2]),
        (tune.randint(5, 6), "randint", [5, 6]),
        (tune.uniform(1, 1), "choice", [1]),
    ],
)
def test_each_domain_has_an_equivalent(domain: Any, kind: str, values: list[Any]) -> None:
    entries = RaySpace({"p": domain}).entries

    assert entries == {"p": {"_type": kind, "_value": values}}
    assert parse_space(entries, algorithm="TPE").parameters


def test_a_nested_configuration_is_one_space_and_comes_back() -> None:
    class Activation:
        pass

    chosen = Activation()
    space = RaySpace(
        {
            "rate": tune.uniform(0, 1),
            "epochs": 3,
            "net": {"depth": tune.qrandint(2, 8, 2), "act": tune.choice([chosen, "relu"])},
        }
    )
    parameters = {"rate": 0.5, "net/depth": 4.0, "net/act": 0}

    config = space.config(parameters)

    assert config == {"rate": 0.5, "net": {"depth": 4, "act": chosen}}
    assert isinstance(config["net"]["depth"], int)
    assert space.parameters({**config, "epochs": 3}) == parameters


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"a": 1}, "at least one domain"),
        ({"a": {"b": tune.grid_search([1, 2])}}, "a/b must be tune.choice"),
        ({"a": tune.sample_from(lambda spec: 1)}, "got tune.sample_from"),
        ({"a": tune.choice([tune.uniform(0, 1)])}, "a domain inside tune.choice"),
    ],
)
def test_domain_without_equivalent_is_refused_by_path(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RaySpace(config)


@pytest.mark.parametrize(
    ("config", "message"),
    [({"b": 1}, "must have 'a'"), ({"a": "z"}, r"a must be one of \['x', 'y'\], got 'z'")],
)
def test_a_configuration_of_another_space_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RaySpace({"a": tune.choice(["x", "y"])}).parameters(config)
