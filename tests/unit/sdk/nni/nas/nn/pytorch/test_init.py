"""Names that `nni.nas.nn.pytorch` exports."""

import nni.nas.nn.pytorch as exported

SPECIFIED = {
    *("ModelSpace", "MutableModule", "ParametrizedModule", "recursive_freeze", "LayerChoice"),
    *("InputChoice", "ValueChoice", "ChosenInputs", "MutationAnchor", "ReductionType"),
    *("Repeat", "Cell", "MutableConv2d", "MutableLinear"),
}


def test_all_specified_names_are_exported() -> None:
    assert set(exported.__all__) >= SPECIFIED
    assert all(hasattr(exported, name) for name in exported.__all__)
