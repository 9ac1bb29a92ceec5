import pytest

from svc_common.errors import InvalidArgumentError
from svc_common.storage.s3_settings import S3Settings, read_s3_settings


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("BUCKET", "PREFIX", "REGION"):
        monkeypatch.delenv(f"NNI_S3_{name}", raising=False)
    monkeypatch.setenv("NNI_S3_ENDPOINT", "https://minio:9000/")
    monkeypatch.setenv("NNI_S3_ACCESS_KEY", "account")
    monkeypatch.setenv("NNI_S3_SECRET_KEY", "hush")
    return monkeypatch


def test_without_an_endpoint_there_is_no_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNI_S3_ENDPOINT", raising=False)

    assert read_s3_settings() is None


def test_endpoint_and_account_are_enough(s3: pytest.MonkeyPatch) -> None:
    settings = read_s3_settings()

    assert settings == S3Settings("https://minio:9000", "account", "hush", "nni", "", "us-east-1")
    assert settings.secure
    assert settings.address == "minio:9000"
    assert "hush" not in repr(settings)


def test_prefix_ends_with_a_slash(s3: pytest.MonkeyPatch) -> None:
    s3.setenv("NNI_S3_PREFIX", "/teams/vision")

    settings = read_s3_settings()

    assert settings is not None
    assert settings.prefix == "teams/vision/"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NNI_S3_ENDPOINT", "minio:9000"),
        ("NNI_S3_ENDPOINT", "-"),
        ("NNI_S3_ENDPOINT", "/"),
        ("NNI_S3_ENDPOINT", "http://minio:9000/bucket"),
        ("NNI_S3_ENDPOINT", "http://minio:port"),
        ("NNI_S3_ENDPOINT", "http://account:secret@minio:9000"),
        ("NNI_S3_BUCKET", "No_Bucket"),
        ("NNI_S3_BUCKET", "a"),
    ],
)
def test_invalid_value_is_refused_with_its_name(
    s3: pytest.MonkeyPatch, name: str, value: str
) -> None:
    s3.setenv(name, value)

    with pytest.raises(InvalidArgumentError, match=f"{name} must be"):
        read_s3_settings()


def test_prefix_may_not_leave_the_bucket(s3: pytest.MonkeyPatch) -> None:
    s3.setenv("NNI_S3_PREFIX", "a/../b")

    with pytest.raises(InvalidArgumentError):
        read_s3_settings()


def test_account_must_be_named(s3: pytest.MonkeyPatch) -> None:
    s3.delenv("NNI_S3_SECRET_KEY")

    with pytest.raises(InvalidArgumentError, match="NNI_S3_SECRET_KEY must be set"):
        read_s3_settings()
