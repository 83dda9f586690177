"""Where a SAML provider's form is posted, and our metadata.

The form comes from the provider's site, so the browser sends no session with it (SameSite=Lax). What is posted is checked as
far as it goes without one, kept for a moment, and the browser is sent to the same address as with OpenID Connect
(``sso.views.answer``), where the request that it answers must be this session's.
"""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from basics.errors import Invalid, Missing
from sso.fetching import ProviderFailed
from sso.models import Protocol, SsoConnection
from sso.saml.requests import own_metadata
from sso.saml.responses import response_read
from sso.saml.services import answer_keep, expected_of, not_ours
from sso.selectors import connection_find, door_get
from sso.views import acs_address, entity_id, rate_check, refused

MAX_STATE = 80  # bytes of RelayState that a provider has to carry (Bindings 3.5.3)
_METADATA_TYPE = "application/samlmetadata+xml"


@csrf_exempt  # what is posted is another site's by nature; it is bound to a session one step later
@never_cache
@require_POST
def acs(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Take what the provider had the browser post, and send the browser to fetch it with its session."""
    rate_check(request, "acs")
    connection = door_get(slug=slug, pk=pk)
    if connection.protocol != Protocol.SAML:
        raise Missing("identity provider")
    for name in ("SAMLResponse", "RelayState"):
        if len(request.POST.getlist(name)) != 1:
            return refused(
                request, connection, ProviderFailed("sso_unsolicited", f"{name} must be there exactly once.")
            )
    state = request.POST["RelayState"]
    try:
        with override("en"):  # what is wrong with the provider is for the audit log alone
            expected = expected_of(
                connection,
                audience=entity_id(request, connection),
                address=acs_address(request, connection),
            )
            said = response_read(request.POST["SAMLResponse"], expected, now=timezone.now())
        if not 1 <= len(state) <= MAX_STATE or not state.isprintable():
            raise not_ours()
        token = answer_keep(connection=connection, said=said)
    except (ProviderFailed, Invalid) as error:
        return refused(request, connection, error)
    where = reverse("sso:answer", args=[slug, pk])
    # 303: the browser comes back by GET, which is a navigation that carries its session.
    return HttpResponseRedirect(f"{where}?{urlencode({'state': state, 'answer': token})}", status=303)


@never_cache
@require_GET
def metadata(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show our metadata for a connection. It names our addresses and nothing of the workspace."""
    connection: SsoConnection = connection_find(slug=slug, pk=pk)
    said = own_metadata(entity_id=entity_id(request, connection), address=acs_address(request, connection))
    return HttpResponse(said, content_type=_METADATA_TYPE)
