from nni.integrations._extras import missing_extra


def test_error_names_the_library_and_the_command_that_installs_it() -> None:
    error = missing_extra("LightningCallback", "PyTorch Lightning", "lightning")

    assert str(error) == (
        "nni.integrations.LightningCallback needs PyTorch Lightning; "
        "run: pip install 'nni[lightning]'"
    )
