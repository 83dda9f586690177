"""A provider's key goes in and is used; it never comes out."""

from __future__ import annotations

import logging
import pickle
import traceback
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from basics.errors import Conflict, Denied, Invalid, Missing
from tenancy import crypto
from tenancy.models import AuditEvent, ProviderCredential
from tenancy.scope import tenant_scope
from tenancy.selectors import Credential, credential_for
from tenancy.services import credential_delete, credential_set
from tenancy.services.credentials import PROVIDERS
from tests.cast import Cast
from toolloop.providers import registry
from webhooks.models import Webhook

SECRET = "sk-a-real-looking-key-0123456789"


def store(cast: Cast, *, by: str = "owner", provider: str = "openai", secret: str = SECRET, **extra):
    return credential_set(tenant=cast.tenant, actor=cast.actor(by), provider=provider, secret=secret, **extra)


def found(cast: Cast, provider: str = "openai") -> Credential:
    credential = credential_for(tenant=cast.tenant, provider=provider)
    assert credential is not None
    return credential


def test_stored_key_comes_back_only_when_revealed(cast: Cast):
    store(cast, model_names=["a", " b ", "a", ""])
    credential = found(cast)
    assert credential.secret.reveal() == SECRET
    assert credential.model_names == ("a", "b")
    for shown in (repr(credential), str(credential.secret), f"{credential}", f"{credential.secret!r:>5}"):
        assert SECRET not in shown
    with pytest.raises(TypeError):
        pickle.dumps(credential.secret)


def test_key_is_in_no_row_audit_event_or_log(cast: Cast, caplog):
    with caplog.at_level(logging.DEBUG):
        store(cast)
        found(cast)
    with tenant_scope(cast.tenant.pk):
        row = ProviderCredential.objects.get()
        kept = str(list(AuditEvent.objects.values())) + str(row) + repr(row)
    assert SECRET.encode() not in bytes(row.secret_encrypted)
    assert SECRET not in kept + caplog.text
    assert row.last_four == SECRET[-4:]


def test_short_key_leaves_no_last_four(cast: Cast):
    assert store(cast, secret="abcd1234").last_four == ""


def test_credential_of_one_tenant_is_not_found_by_another(cast: Cast):
    store(cast)
    assert credential_for(tenant=cast.other_tenant, provider="openai") is None
    with pytest.raises(Missing):
        credential_delete(tenant=cast.other_tenant, actor=cast.actor("outsider"), provider="openai")
    assert found(cast).secret.reveal() == SECRET


def test_row_copied_into_another_tenant_cannot_be_read(cast: Cast):
    stolen = bytes(store(cast).secret_encrypted)
    with tenant_scope(cast.other_tenant.pk):
        ProviderCredential.objects.create(
            tenant=cast.other_tenant, provider="openai", secret_encrypted=stolen
        )
    with pytest.raises(Conflict) as refused:
        credential_for(tenant=cast.other_tenant, provider="openai")
    assert refused.value.code == "credential_unreadable"
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_key_stays_readable_when_encryption_keys_rotate(cast: Cast, settings):
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    store(cast)  # under the key derived from SECRET_KEY
    settings.CREDENTIAL_KEYS = [old]
    assert found(cast).secret.reveal() == SECRET
    store(cast)
    settings.CREDENTIAL_KEYS = [new, old]
    assert found(cast).secret.reveal() == SECRET
    store(cast)
    settings.CREDENTIAL_KEYS = [new]
    assert found(cast).secret.reveal() == SECRET
    settings.CREDENTIAL_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(Conflict):
        credential_for(tenant=cast.tenant, provider="openai")


def test_old_key_can_go_once_everything_is_encrypted_anew(cast: Cast, settings):
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.CREDENTIAL_KEYS = [old]
    store(cast)
    sealed = crypto.encrypt("whsec", tenant_id=cast.tenant.pk, purpose="webhook")
    with tenant_scope(cast.tenant.pk):
        hook = Webhook.objects.create(tenant=cast.tenant, url="https://h.example", secret_encrypted=sealed)
    settings.CREDENTIAL_KEYS = [new, old]
    for anew in (1, 0):  # a second run finds nothing to do
        out = StringIO()
        call_command("credentials_rotate", stdout=out)
        said = out.getvalue()
        assert f"tenancy.ProviderCredential: {anew} encrypted again" in said
        assert f"webhooks.Webhook: {anew} encrypted again" in said
        assert "tools.ToolCredential: 0 encrypted again" in said
        assert "tenancy.IdempotentAnswer: 0 encrypted again" in said
        assert SECRET not in said
    settings.CREDENTIAL_KEYS = [new]
    assert found(cast).secret.reveal() == SECRET
    with tenant_scope(cast.tenant.pk):
        hook.refresh_from_db()
        told = list(AuditEvent.objects.filter(action="credential.rotate").values_list("data", flat=True))
    assert sorted((fact["kind"], fact["count"]) for fact in told) == [
        ("provider credential", 1),
        ("webhook", 1),
    ]
    assert (
        crypto.decrypt(hook.secret_encrypted, tenant_id=cast.tenant.pk, purpose="webhook").reveal() == "whsec"
    )
    settings.CREDENTIAL_KEYS = [old]  # as if the wrong one was dropped: nothing is lost
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("credentials_rotate", stdout=StringIO(), stderr=StringIO())
    settings.CREDENTIAL_KEYS = [new]
    assert found(cast).secret.reveal() == SECRET


def test_key_stays_readable_when_the_secret_key_is_replaced(cast: Cast, settings):
    store(cast)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-secret-key-another-secret-key-another"
    assert found(cast).secret.reveal() == SECRET


def test_bad_encryption_key_is_named(settings):
    settings.CREDENTIAL_KEYS = ["short"]
    with pytest.raises(ImproperlyConfigured, match="GROUNDWORK_CREDENTIAL_KEYS"):
        crypto.encrypt("x", tenant_id=1, purpose="p")


@pytest.mark.parametrize("who", ["member", "viewer"])
def test_credential_needs_the_right(cast: Cast, who: str):
    with pytest.raises(Denied):
        store(cast, by=who)
    with pytest.raises(Denied):
        credential_delete(tenant=cast.tenant, actor=cast.actor(who), provider="openai")


@pytest.mark.parametrize(
    "bad",
    [
        {"provider": "nobody"},
        {"provider": "extractive"},
        {"secret": ""},
        {"secret": "two words"},
        {"secret": "line\nbreak"},
        {"secret": "x" * 501},
        {"provider": "compatible", "secret": ""},
    ],
)
def test_unusable_credential_is_refused(cast: Cast, bad):
    with pytest.raises(Invalid):
        store(cast, **bad)


def test_stored_key_is_not_sent_to_a_new_address(cast: Cast):
    store(cast, base_url="https://one.example.org/v1")
    with pytest.raises(Invalid, match="Enter the key again"):
        store(cast, secret="", base_url="https://evil.example.org/v1")
    assert found(cast).base_url == "https://one.example.org/v1"
    store(cast, secret="", base_url="https://one.example.org/v1/", label="kept")
    assert found(cast).secret.reveal() == SECRET


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/v1",
        "http://localhost/v1",
        "http://169.254.169.254/latest",
        "http://[::1]/v1",
        "http://[::ffff:127.0.0.1]/v1",
        "http://10.0.0.8/v1",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://127.1/",
        "http://db.internal/v1",
        "http://ollama:11434/v1",
        "http://localhost./v1",
        "ftp://example.org/",
        "https://user:pass@example.org/",
        "https://example.org/?x=1",
        "javascript:alert(1)",
        "https://",
        "https://exa mple.org",
        "https://example.org\\@127.0.0.1/",
        "https://example.org:99999/",
    ],
)
def test_address_inside_or_malformed_is_refused(cast: Cast, url: str):
    with pytest.raises(Invalid):
        store(cast, provider="compatible", base_url=url)


def test_private_address_is_taken_when_the_operator_allows_it(cast: Cast, settings):
    settings.ALLOW_PRIVATE_MODEL_URLS = True
    store(cast, provider="compatible", secret="", base_url="http://ollama:11434/v1")
    assert found(cast, "compatible").base_url == "http://ollama:11434/v1"
    assert not found(cast, "compatible").secret


def test_switched_off_credential_is_not_used(cast: Cast):
    store(cast, is_enabled=False)
    assert credential_for(tenant=cast.tenant, provider="openai") is None


def test_deleted_credential_is_gone_and_audited(cast: Cast):
    store(cast)
    credential_delete(tenant=cast.tenant, actor=cast.actor("admin"), provider="openai")
    assert credential_for(tenant=cast.tenant, provider="openai") is None
    with tenant_scope(cast.tenant.pk):
        assert [e.action for e in AuditEvent.objects.order_by("pk")] == [
            "credential.set",
            "credential.delete",
        ]


def test_providers_are_those_of_the_loop_that_take_a_key():
    assert set(PROVIDERS) == set(registry.PROVIDERS) - {"extractive", "scripted"}
