"""Patterns of hosts: what may be listed, and which hosts of a URL are on a list. No socket is opened."""

from __future__ import annotations

import pytest

from basics.net_hosts import host_pattern
from basics.net_policy import AddressRefused, NetPolicy, addresses_checked, url_check

LIST = (
    "api.example.org",
    "*.shop.example.com",
    "xn--bcher-kva.example",
    "93.184.216.34",
    "2606:4700:4700::1111",
)
INSIDE = [
    "https://api.example.org/x",
    "http://API.Example.ORG/",
    "https://api.example.org./",
    "https://api.example.org:8443/",
    "https://a.shop.example.com/",
    "https://a.b.shop.example.com/",
    "https://bücher.example/",
    "https://BÜCHER.example/",
    "http://93.184.216.34/",
    "http://[2606:4700:4700::1111]/",
    "http://[2606:4700:4700:0:0:0:0:1111]/",
]
OUTSIDE = [
    "https://example.org/",
    "https://api.example.org.evil.example/",
    "https://evilapi.example.org/",
    "https://x.api.example.org/",
    "https://shop.example.com/",
    "https://evilshop.example.com/",
    "https://.shop.example.com/",
    "https://shop.example.com.evil.example/",
    "https://evil.example/?api.example.org",
    "https://evil.example/#@api.example.org",
    "https://api.example.org@evil.example/",
    "https://api.example.org\\\\@evil.example/",
    "https://evil.example\\\\.shop.example.com/",
    "https://ａpi.example.org/",
    "https://api.example.org%2eevil.example/",
    "https://api.example.org%00.evil.example/",
    "https://ápi.example.org/",
    "https://аpi.example.org/",
    "http://1572395042/",
    "http://0x5db8d822/",
    "http://0135.0270.0330.042/",
    "http://93.184.216.35/",
    "http://93.184.216.34.evil.example/",
    "http://[::ffff:93.184.216.34]/",
    "http://8.8.8.8/",
    "http://[2606:4700:4700::1112]/",
]


def policy() -> NetPolicy:
    return NetPolicy.of([], [host_pattern(text) for text in LIST])


@pytest.mark.parametrize("url", INSIDE)
def test_host_on_the_list_is_allowed(url: str) -> None:
    assert url_check(url, policy()).raw_host


@pytest.mark.parametrize("url", OUTSIDE)
def test_host_beside_the_list_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        url_check(url, policy())


def test_refusal_names_the_host_and_the_list() -> None:
    with pytest.raises(
        AddressRefused, match=r"“example\.org” is not on this workspace's list of outgoing hosts"
    ):
        url_check("https://example.org/", policy())
    assert url_check("https://example.org/")


def test_name_that_is_not_listed_is_not_even_looked_up() -> None:
    """A look-up would tell a stranger's DNS server what stands in the name."""
    asked: list[str] = []

    def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["93.184.216.34"]

    with pytest.raises(AddressRefused):
        addresses_checked("secret.evil.example", 443, policy(), resolver)
    assert asked == []
    assert addresses_checked("api.example.org", 443, policy(), resolver)


def test_list_opens_nothing_inside() -> None:
    inside = NetPolicy.of([], ["127.0.0.1", "wiki"])
    with pytest.raises(AddressRefused, match="loopback"):
        url_check("http://127.0.0.1/", inside)
    with pytest.raises(AddressRefused, match="no public address"):
        addresses_checked("wiki", 80, inside, lambda host, port: ["10.0.0.1"])


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (" API.Example.org. ", "api.example.org"),
        ("*.Example.ORG", "*.example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("*.bücher.example", "*.xn--bcher-kva.example"),
        ("[2606:4700:4700:0::1111]", "2606:4700:4700::1111"),
        ("wiki", "wiki"),
    ],
)
def test_pattern_is_stored_in_one_form(given: str, stored: str) -> None:
    assert host_pattern(given) == stored


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "*.",
        "*.com",
        "*.*.example.org",
        "a.*.org",
        "*example.org",
        "https://a.example.org",
        "a.example.org/x",
        "a b.org",
        "a.example.org:443",
        "u@a.example.org",
        "a..example.org",
        "-a.example.org",
        "a-.example.org",
        "1.2.3",
        "0x7f.1",
        "*.1.2.3.4",
        "a\\0.org",
        "a\\\\b.org",
        "x" * 64 + ".org",
        "a." * 130 + "org",
        "%61.example.org",
        "[::1",
        "*.127.0.0.1",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"isn't a host|is too broad"):
        host_pattern(text)
