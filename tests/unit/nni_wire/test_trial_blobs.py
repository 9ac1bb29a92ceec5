"""Tests of the names that manager and agents agree on."""

from nni_wire.trial_blobs import OUTPUT_ARCHIVE, OUTPUT_FILES, output_key, output_prefix


def test_the_key_of_an_output_file_names_experiment_trial_and_attempt() -> None:
    key = output_key("abcd1234", "Tr1al", 2, "stdout")

    assert key == "output/abcd1234/Tr1al/2/stdout"


def test_all_outputs_of_an_experiment_share_its_prefix() -> None:
    key = output_key("abcd1234", "Tr1al", 1, OUTPUT_ARCHIVE)

    assert key.startswith(output_prefix("abcd1234"))
    assert not key.startswith(output_prefix("abcd"))


def test_the_archive_is_the_last_file_of_an_output() -> None:
    assert OUTPUT_FILES[-1] == OUTPUT_ARCHIVE
