"""A passkey in a real browser, whose device is Chromium's virtual authenticator."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.cast import Cast

DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
LOOKS = {
    "desktop-light": ({"width": 1440, "height": 900}, "light"),
    "desktop-dark": ({"width": 1440, "height": 900}, "dark"),
    "phone-light": ({"width": 390, "height": 844}, "light"),
    "phone-dark": ({"width": 390, "height": 844}, "dark"),
}


def shoot(page: Page, name: str) -> None:
    """Keep pictures of the page that is open where somebody wants to look at them."""
    if folder := os.environ.get("SCREENSHOT_FOLDER"):
        for look, (size, scheme) in LOOKS.items():
            page.set_viewport_size(size)  # type: ignore[arg-type]
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.screenshot(path=Path(folder) / f"{name}-{look}.png", full_page=True)
        page.set_viewport_size({"width": 1440, "height": 900})


def enter(page: Page, email: str) -> None:
    """Enter address and password; the page has a button for passkeys too."""
    page.goto("/accounts/login/")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password", exact=True).fill("secret-password")
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_person_adds_a_passkey_and_signs_in_with_it(
    new_page: Callable[..., Page], site: Site, cast: Cast
) -> None:
    page = new_page(base_url=site.url.replace("127.0.0.1", "localhost"))  # a passkey needs a name of a host
    device = page.context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    added = device.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
    enter(page, cast.user("member").email)
    page.wait_for_url(f"**/t/{cast.tenant.slug}/chat/")

    page.goto("/profile/")
    shoot(page, "profile-empty")
    page.get_by_role("link", name="Add a passkey").click()
    shoot(page, "again")
    page.get_by_label("Password").fill("secret-password")
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("heading", name="Add a passkey")).to_be_visible()
    shoot(page, "add")
    page.get_by_label("Name").fill("Work laptop")
    page.get_by_role("button", name="Create passkey").click()
    page.wait_for_url("**/2fa/recovery-codes/**")
    held = device.send("WebAuthn.getCredentials", {"authenticatorId": added["authenticatorId"]})
    assert [one["rpId"] for one in held["credentials"]] == ["localhost"]
    page.goto("/profile/")
    card = page.locator("#passkeys")
    expect(card).to_contain_text("Work laptop")
    shoot(page, "profile")

    page.goto("/accounts/2fa/webauthn/add/")
    page.get_by_role("button", name="Create passkey").click()
    expect(page.get_by_role("alert")).to_have_text("This device already has a passkey for your account.")

    page.goto("about:blank")  # signed out, its own requests would lead elsewhere meanwhile
    page.context.clear_cookies()
    page.goto("/accounts/login/")
    shoot(page, "login")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"**/t/{cast.tenant.slug}/chat/")

    page.goto("about:blank")  # signed out, its own requests would lead elsewhere meanwhile
    page.context.clear_cookies()
    enter(page, cast.user("member").email)
    expect(page.get_by_role("heading", name="Second step")).to_be_visible()
    shoot(page, "second")
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(f"**/t/{cast.tenant.slug}/chat/")

    page.goto("/profile/")
    card.get_by_role("button", name="Rename").click()
    page.get_by_role("dialog").get_by_label("Name").fill("Old laptop")
    page.get_by_role("button", name="Save name").click()
    expect(card).to_contain_text("Old laptop")
    card.get_by_role("button", name="Remove").click()
    shoot(page, "remove")
    page.get_by_role("button", name="Remove passkey").click()
    page.get_by_role("link", name="Use a passkey").click()
    shoot(page, "again-passkey")
    page.get_by_role("button", name="Use a passkey").click()
    expect(card).to_contain_text("No passkeys yet")


def test_reason_is_shown_when_the_device_refuses(
    new_page: Callable[..., Page], site: Site, cast: Cast
) -> None:
    page = new_page(base_url=site.url.replace("127.0.0.1", "localhost"))
    device = page.context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    device.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE | {"isUserVerified": False}})
    page.goto("/accounts/login/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("No passkey was used")
    shoot(page, "login-problem")


def test_button_is_not_there_where_no_passkey_works(new_page: Callable[..., Page], cast: Cast) -> None:
    page = new_page()  # at an IP address
    page.goto("/accounts/login/")
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_have_count(0)
