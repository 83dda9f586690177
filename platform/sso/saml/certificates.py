"""The certificates that a SAML provider signs with: as metadata and people give them, and as they are kept."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from basics.texts import gettext as _
from sso.fetching import ProviderFailed

MAX_CERTIFICATES = 6
MIN_RSA_BITS = 2048
CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


def certificates_read(text: str) -> list[x509.Certificate]:
    """Return the certificates of a text: PEM blocks, or the bare Base64 of one as providers' pages show it.

    Raises:
        ProviderFailed: there are none, too many, or one that can't be used, with what is wrong with it.
    """
    blocks = _PEM.findall(text) or ([text] if text.strip() else [])
    if not 1 <= len(blocks) <= MAX_CERTIFICATES:
        raise _bad(_("Certificates: 1 to %(most)s are needed.") % {"most": MAX_CERTIFICATES})
    return [_certificate(block) for block in blocks]


def certificates_text(certificates: list[x509.Certificate]) -> str:
    """Return certificates as PEM, each once."""
    return "".join(dict.fromkeys(one.public_bytes(Encoding.PEM).decode() for one in certificates))


def expires_at(certificate: x509.Certificate) -> datetime:
    """Return when a certificate ends: from then on nothing that it signed counts."""
    return certificate.not_valid_after_utc


def _certificate(block: str) -> x509.Certificate:
    try:
        found = x509.load_der_x509_certificate(base64.b64decode("".join(block.split()), validate=True))
        key = found.public_key()
    except (ValueError, binascii.Error, TypeError) as error:
        raise _bad(_("Certificates: one can't be read.")) from error
    except UnsupportedAlgorithm as error:
        raise _bad(_("Certificates: one has a key that isn't supported.")) from error
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < MIN_RSA_BITS:
            raise _bad(
                _("Certificates: one has an RSA key of %(bits)s bits; %(needed)s are needed.")
                % {"bits": key.key_size, "needed": MIN_RSA_BITS}
            )
    elif not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, CURVES):
        raise _bad(_("Certificates: one has a key that isn't RSA or ECDSA (P-256, P-384, P-521)."))
    return found


def _bad(message: str) -> ProviderFailed:
    return ProviderFailed("sso_certificate", message)
