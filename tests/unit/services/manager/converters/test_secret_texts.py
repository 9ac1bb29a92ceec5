import time

import pytest

from svc_manager.converters.secret_texts import MASK, TextMask


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("API_KEY=abc python3 t.py --epochs=3", f"API_KEY={MASK} python3 t.py --epochs=3"),
        ("export WANDB_API_KEY='a b' && x", f"export WANDB_API_KEY={MASK} && x"),
        ('a --password="x \\" y"z b', f"a --password={MASK} b"),
        ("a --token abc b", f"a --token {MASK} b"),
        ("a --token   'b c", f"a --token   {MASK}"),
        ("PASSWORD := a b", f"PASSWORD := {MASK} b"),
        ("https://a/b?access_token=xyz&x=1", f"https://a/b?access_token={MASK}&x=1"),
        ("Authorization: Bearer abc.def x", f"Authorization: {MASK} x"),
        ("authorization:basic abc", f"authorization:{MASK}"),
        ('{"api_key": "a", "x": 1}', f'{{"api_key": {MASK} "x": 1}}'),
        ("--opts=token=abc", f"--opts=token={MASK}"),
        ("sh -c 'TOKEN=a;PW=b|c'", f"sh -c 'TOKEN={MASK};PW={MASK}|c'"),
        (f"{'x' * 257}=5", f"{'x' * 257}={MASK}"),
        ("a postgres://me:word@host b", MASK),
    ],
)
def test_values_of_secret_names_are_masked(text: str, shown: str) -> None:
    assert TextMask()(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "python3 trial.py --lr 0.1 --max_tokens=5 --max-tokens 5",
        "https://host:8080/a?b=c",
        "a --password=$PW --token ${TOKEN} --hub-token \"$T\" PW='$PW'",
        "a --token --other",
        "TOKEN=",
        "the token",
    ],
)
def test_texts_without_secrets_are_shown(text: str) -> None:
    assert TextMask()(text) == text


def test_the_rest_of_a_variable_is_no_reference() -> None:
    assert TextMask()("PW=$PW.x") == f"PW={MASK}"


def test_more_names_than_are_looked_at_mask_the_whole_text_and_those_after_it() -> None:
    most = TextMask()
    text = "a=b " * 5_000

    assert most(text) == text
    assert most("plain") == "plain"
    assert most("a=b") == MASK
    assert TextMask()("a=b " * 5_001) == MASK


def test_texts_that_are_too_long_are_masked_if_they_may_assign() -> None:
    texts = TextMask()
    long = "a" * 149_999 + ":"

    assert texts(long) == long
    assert texts("b" * 1_000_000) == "b" * 1_000_000
    assert texts(long) == long
    assert texts(":") == MASK
    assert texts("plain") == "plain"


@pytest.mark.parametrize(
    "piece",
    ["a=b ", "token=b ", '"', 'token="', "token='\"", "x", "--a ", "a.", "-", "token=Bearer ", " "],
)
def test_time_grows_with_the_length_of_the_text(piece: str) -> None:
    started = time.thread_time()

    TextMask()("token" + piece * (290_000 // len(piece)))

    assert time.thread_time() - started < 2.0, "a quadratic search takes minutes"
