import pytest

from nni.nas.execution.trial_signatures import TrialSigner
from nni_wire.values import from_value, to_value

PARAMETERS = {"model": {"a": [1, 0.1, None, True, "\u00e9", (2,)]}, "sample": {"x": 1e-300}}


def test_signature_survives_the_log_of_the_experiment() -> None:
    signer = TrialSigner()

    read = from_value(to_value(signer.sign("trial", PARAMETERS)))

    assert isinstance(read, dict)
    assert signer.is_signed("trial", read)


def test_other_parameters_and_other_trials_are_not_signed() -> None:
    signer = TrialSigner()
    signed = signer.sign("trial", PARAMETERS)

    assert not signer.is_signed("trial-2", signed)
    assert not signer.is_signed("trial", {**signed, "model": 1})
    assert not signer.is_signed("trial", {**signed, "more": 1})
    assert not signer.is_signed("trial", PARAMETERS)


@pytest.mark.parametrize("signature", [None, 5, "", "\u00e9", ["a"]])
def test_signature_of_another_form_is_none(signature: object) -> None:
    assert not TrialSigner().is_signed("trial", {**PARAMETERS, "signature": signature})


def test_secret_is_random_and_may_be_given() -> None:
    signer = TrialSigner()

    assert signer.secret != TrialSigner().secret
    assert TrialSigner(signer.secret).is_signed("trial", signer.sign("trial", PARAMETERS))
