import pytest

from svc_common.errors import InvalidArgumentError
from svc_manager.settings import from_environment


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_NATS_URL", "nats://127.0.0.1:4222")
    monkeypatch.setenv("NNI_TOKEN", "secret")
    monkeypatch.setenv("NNI_DISPATCHER_GRPC", "127.0.0.1:1")
    for name in ("NNI_REDIS_URL", "NNI_S3_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def test_local_shape_needs_no_server_for_its_stores() -> None:
    settings = from_environment()

    assert settings.redis_url is None
    assert settings.s3 is None


def test_redis_url_is_taken_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_REDIS_URL", "rediss://user:hush@redis:6379/2")

    settings = from_environment()

    assert settings.redis_url == "rediss://user:hush@redis:6379/2"
    assert "hush" not in repr(settings)


@pytest.mark.parametrize(
    "url", ["redis:6379", "redis://redis:port", "http://redis:6379", "redis://"]
)
def test_url_that_is_none_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("NNI_REDIS_URL", url)

    with pytest.raises(InvalidArgumentError, match="NNI_REDIS_URL must be redis") as refusal:
        from_environment()

    assert f"got {url!r}" not in refusal.value.message
