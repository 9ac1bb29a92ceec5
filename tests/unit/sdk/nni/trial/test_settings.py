import pytest

from nni.trial import settings


@pytest.fixture
def in_experiment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in {
        "NNI_PLATFORM": "local",
        "NNI_EXP_ID": "abcd1234",
        "NNI_TRIAL_JOB_ID": "aBcDe",
        "NNI_TRIAL_SEQ_ID": "7",
    }.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_process_outside_an_experiment_is_standalone() -> None:
    assert not settings.in_experiment()
    assert settings.experiment_id() == settings.trial_id() == "STANDALONE"
    assert settings.sequence_id() == 0


@pytest.mark.usefixtures("in_experiment")
def test_trial_reads_its_ids() -> None:
    assert settings.in_experiment()
    assert (settings.experiment_id(), settings.trial_id()) == ("abcd1234", "aBcDe")
    assert settings.sequence_id() == 7


def test_variable_that_a_wrapper_dropped_is_named(in_experiment: pytest.MonkeyPatch) -> None:
    in_experiment.delenv("NNI_TRIAL_JOB_ID")

    with pytest.raises(RuntimeError, match="NNI_TRIAL_JOB_ID must be set where NNI_PLATFORM is"):
        settings.trial_id()


@pytest.mark.parametrize(
    ("text", "expected"), [("true", True), ("True", True), ("false", False), ("", False)]
)
def test_multi_phase_is_the_word_true(
    text: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTI_PHASE", text)

    assert settings.is_multi_phase() is expected
