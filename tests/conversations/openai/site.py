"""What the clients' suites ask of the running product, and what its models are."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from budgets.services import budget_set
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.fake_provider import FakeProvider

if TYPE_CHECKING:
    import openai

PLAIN = "compatible/fake-words12"
SLOW = "compatible/fake-words400-gap50"
SEARCHING = "compatible/fake-search1-words12"
CLIENT_TOOL = "compatible/fake-search1-use_weather-words6"
JSON = "compatible/fake-json"
SCRIPTED = "compatible/fake-scripted"
TIERED = "compatible/fake-words3-tier_flex"
FAILING, BUSY = "compatible/fake-fail400", "compatible/fake-fail429"
CUT, FILTERED = "compatible/fake-words3-ends_length", "compatible/fake-words3-ends_content_filter"
MODELS = (PLAIN, SLOW, SEARCHING, CLIENT_TOOL, JSON, SCRIPTED, FAILING, BUSY, CUT, FILTERED, TIERED)
QUESTION = "What is the duty on lamps?"
ASK: list[Any] = [{"role": "user", "content": QUESTION}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tell the weather.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
}
SCOPES = [
    "conversation.write",
    "conversation.read",
    "tool.run",
    "search.run",
    "collection.read",
    "model.read",
    "run.read",
]


@dataclass(frozen=True)
class Site:
    """The running product, with a document about lamps."""

    cast: Cast
    client: openai.OpenAI
    fake: FakeProvider
    url: str
    key: str

    @property
    def base_url(self) -> str:
        return f"{self.url}/api/v1"


def poor_key(site: Site) -> str:
    """Return a key whose budget is used up."""
    who: Any = {"tenant": site.cast.tenant, "actor": site.cast.actor("owner")}
    with tenant_scope(site.cast.tenant.pk):
        row, key = api_key_create(**who, name="poor", scopes=SCOPES)
        budget_set(**who, kind="key", subject_id=row.pk, amount_usd=Decimal(0))
    return str(key)


def two_cities(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    """Ask for the weather of two cities side by side, then say what came back."""
    results = [m["content"] for m in body["messages"] if m["role"] == "tool"]
    if not results:
        return [{"name": "weather", "arguments": {"query": city}} for city in ("Lyon", "Graz")]
    return f"It is {' and '.join(results)}."
