"""A provider's metadata (https://docs.oasis-open.org/security/saml/v2.0/saml-metadata-2.0-os.pdf), as far as it is used."""

from __future__ import annotations

from dataclasses import dataclass

from basics.texts import gettext as _
from sso.fetching import ProviderFailed, bytes_get
from sso.saml.certificates import certificates_read, certificates_text
from sso.saml.documents import METADATA, document_parse, found, text_of

REDIRECT = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
MAX_METADATA = 500_000


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a provider's metadata says.

    Attributes:
        certificates: all that it may sign with, as PEM; two during a rotation.
    """

    entity_id: str
    sso_url: str
    certificates: str


def metadata_read(given: str) -> Metadata:
    """Return what metadata says.

    Args:
        given: the XML, or an address to fetch it from.

    Raises:
        ProviderFailed: it can't be fetched or read, or lacks what is needed.
    """
    given = given.strip()
    data = bytes_get(given, "Metadata") if given.startswith(("http://", "https://")) else given.encode()
    if len(data) > MAX_METADATA:
        raise _bad(_("Metadata: it is too large."))
    root = document_parse(data, "Metadata", is_signed=False)
    if root.tag not in {f"{{{METADATA}}}EntityDescriptor", f"{{{METADATA}}}EntitiesDescriptor"}:
        raise _bad(_("Metadata: it isn't the metadata of a SAML provider."))
    roles = list(root.iter(f"{{{METADATA}}}IDPSSODescriptor"))
    if len(roles) != 1:
        raise _bad(_("Metadata: it describes %(count)s identity providers, not one.") % {"count": len(roles)})
    role = roles[0]
    entity = role.getparent()
    entity_id = entity.get("entityID", "") if entity is not None else ""
    addresses = [
        one.get("Location", "")
        for one in found(role, "./md:SingleSignOnService")
        if one.get("Binding") == REDIRECT
    ]
    if not addresses:
        raise _bad(_("Metadata: it names no sign-in address with the HTTP-Redirect binding."))
    keys = [one for one in found(role, "./md:KeyDescriptor") if one.get("use", "signing") == "signing"]
    texts = [text_of(one) for key in keys for one in found(key, ".//ds:X509Certificate")]
    if not texts:
        raise _bad(_("Metadata: it has no signing certificate."))
    certificates = [one for text in dict.fromkeys(texts) for one in certificates_read(text)]
    return Metadata(entity_id.strip(), addresses[0].strip(), certificates_text(certificates))


def _bad(message: str) -> ProviderFailed:
    return ProviderFailed("sso_metadata", message)
