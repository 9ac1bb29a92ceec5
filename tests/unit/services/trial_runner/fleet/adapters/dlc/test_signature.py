from __future__ import annotations

from svc_trial_runner.fleet.adapters.dlc.signature import (
    AccessKey,
    authorization,
    canonical_query,
)

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_signature_is_that_of_the_documented_example() -> None:
    query = {
        "ImageId": "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd",
        "RegionId": "cn-shanghai",
    }
    headers = {
        "host": "ecs.cn-shanghai.aliyuncs.com",
        "x-acs-action": "RunInstances",
        "x-acs-content-sha256": EMPTY,
        "x-acs-date": "2023-10-26T10:22:32Z",
        "x-acs-signature-nonce": "3156853299f313e23d1673dc12e1703d",
        "x-acs-version": "2014-05-26",
    }
    key = AccessKey("YourAccessKeyId", "YourAccessKeySecret")

    assert authorization(key, "POST", "/", query, headers) == (
        "ACS3-HMAC-SHA256 Credential=YourAccessKeyId,SignedHeaders=host;x-acs-action;"
        "x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,"
        "Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"
    )


def test_parameters_are_sorted_and_encoded() -> None:
    assert canonical_query({"b": "x y*", "a": "~/"}) == "a=~%2F&b=x%20y%2A"


def test_key_does_not_show_its_secret() -> None:
    assert "hidden" not in repr(AccessKey("id", "hidden"))


def test_values_of_headers_are_signed_without_blanks_around_them() -> None:
    key = AccessKey("id", "secret")
    headers = {"x-acs-content-sha256": EMPTY, "host": "a"}

    first = authorization(key, "GET", "/", {}, headers)

    assert authorization(key, "GET", "/", {}, {**headers, "host": " a "}) == first
    others = [
        authorization(AccessKey("id", "other"), "GET", "/", {}, headers),
        authorization(key, "POST", "/", {}, headers),
        authorization(key, "GET", "/a", {}, headers),
        authorization(key, "GET", "/", {"a": "b"}, headers),
        authorization(key, "GET", "/", {}, {**headers, "host": "b"}),
    ]
    assert len({first, *others}) == 6
