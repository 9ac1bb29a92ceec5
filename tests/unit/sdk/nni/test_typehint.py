"""Types that annotate the tuners of NNI 3.0."""

from nni import typehint
from nni.typehint import Parameters, SearchSpace, TrialMetric, TrialRecord


def test_names_of_nni_3_annotate_a_tuner() -> None:
    def receive(space: SearchSpace, parameters: Parameters, value: TrialMetric) -> TrialRecord:
        assert space.keys() == parameters.keys()
        return {"parameter": parameters, "value": value}

    assert receive({"x": {}}, {"x": 1}, 0.5) == TrialRecord(parameter={"x": 1}, value=0.5)


def test_every_exported_name_is_there() -> None:
    assert all(hasattr(typehint, name) for name in typehint.__all__)
