"""Names of secrets."""

import pytest

from svc_manager.converters.secret_names import names_secret, shows_password, variable_name


@pytest.mark.parametrize(
    "name",
    [
        *("api_key", "apiKey", "APIKey", "wandb_api_key", "WANDB_API_KEY", "wandbApiKey", "apikey"),
        *("private_key", "privateKey", "passwd", "pwd", "dbPwd", "auth", "authToken", "hf-token"),
        *("credential", "credentials", "aws.credentials", "connection_string", "connectionString"),
        *("password", "passwordFile", "ssh_passphrase", "storage_account_key", "accessKeySecret"),
        *("client-secret", "token", "tokens", "refresh_tokens", "Authorization", "dsn", "sas"),
        *("\uff50\uff57\uff44", "DB_PASS", "user2pwd", "token_file", "ssh key"),
        *("slack_webhook", "webhookUrl", "DATABASE_URL", "redis_url", "mongoUri", "database-uri"),
        *("pgpass", "userpass", "otp", "session_id"),
        *("wandbKey", "comet_key", "openai-key", "authn", "authz", ".dockerconfigjson"),
    ],
)
def test_names_of_secrets_in_any_spelling(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("lr", "max_tokens", "num_tokens", "maxTokens", "n_tokens", "tokenizer", "author"),
        *("authors", "key", "keys", "bypass", "passes", "compass", "spin", "pattern", "path"),
        *(
            "optimize_mode",
            "class_args",
            "monkey",
            "signal",
            "",
            "_",
            "max_new_tokens",
            "hostKeyPolicy",
        ),
    ],
)
def test_names_of_other_fields(name: str) -> None:
    assert not names_secret(name)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"name": "TOKEN", "value": "x"}, "TOKEN"),
        ({"name": "TOKEN", "valueFrom": {}}, ""),
        ({"name": 1, "value": "x"}, ""),
        ({"value": "x"}, ""),
    ],
)
def test_name_of_a_variable_stands_beside_its_value(fields: dict[str, object], name: str) -> None:
    assert variable_name(fields) == name


@pytest.mark.parametrize(
    "text",
    [
        "postgres://me:word@host/db",
        "amqp://:word@host",
        "--store redis://default:p%40ss:word@host:6379/0 --lr 1",
        "git+https://me:word@host/x.git",
    ],
)
def test_address_with_a_password_shows_it(text: str) -> None:
    assert shows_password(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "https://host:8080/a",
            "https://me@host/a",
            "me:word@host",
            "",
            "a://b",
            "http://[::1]:80",
        ),
        *("https://host:80/path@v1", "x" * 100_000 + "://" + ":" * 1000),
    ],
)
def test_other_texts_show_no_password(text: str) -> None:
    assert not shows_password(text)


@pytest.mark.parametrize(("length", "secret"), [(256, False), (257, True)])
def test_name_that_is_too_long_to_be_looked_at_counts_as_that_of_a_secret(
    length: int, secret: bool
) -> None:
    assert names_secret("a" * length) is secret
