"""Tools of the trade-compliance example: tariff lines, additional duties and agencies' requirements.

Documents of the types that answer best come first; no document is left out for its type.

They are a group of their own, which nobody may call until a grant says so: a workspace about something else is not
offered them.
"""

from __future__ import annotations

from functools import partial

from apps.collections.ingestion.codes import tariff_code
from apps.conversations.toolset.document_search import documents_search
from apps.conversations.toolset.results import SCOPE, Scope
from apps.tools.toolset.bundles import Bundle
from toolloop.tools import ToolContext, ToolError, ToolOutput, Toolset, tool

TRADE = "trade"
SCHEDULES, SECTION_301 = "hts_schedule", "section301_tariff"
GUIDES, PUBLICATIONS, REGULATIONS = "cbp_guide", "gov_publication", "agency_regulation"


@tool
async def lookup_hts_code(
    context: ToolContext, code: str, goods: str = "", collections: list[str] | None = None
) -> ToolOutput:
    """Find a code of the Harmonized Tariff Schedule: its description, unit and rates of duty.

    "found" says what was found: exact; near: only longer codes under it; parent: only a shorter one it falls under; none:
    the code is not in the documents. Tell the user when it is not exact.

    Args:
        code: 4, 6, 8 or 10 digits in any spelling, such as 8539.50.00; "" when only the goods are known.
        goods: what is imported, in plain words; helps to tell neighbouring codes apart.
        collections: names of the collections to search; leave it out to search all of them.
    """
    named = hts_code(code) if code.strip() else ""
    if not named and not goods.strip():
        raise ToolError("Give a code, the goods, or both.")
    query = " ".join(filter(None, [named, goods.strip()]))
    is_alone = not goods.strip()
    return await _search(context, query, collections, SCHEDULES, is_lookup=is_alone, is_of_code=bool(named))


@tool
async def check_tariffs(
    context: ToolContext, code: str, country: str = "", collections: list[str] | None = None
) -> ToolOutput:
    """Find additional duties and exclusions for a tariff code: Section 301 lists, and the notes of chapter 99.

    Args:
        code: 4, 6, 8 or 10 digits in any spelling, such as 8539.50.00.
        country: where the goods come from, such as China.
        collections: names of the collections to search; leave it out to search all of them.
    """
    origin = f" products of {country.strip()}" if country.strip() else ""
    query = f"{hts_code(code)} additional duty exclusion{origin}"
    return await _search(context, query, collections, SECTION_301, SCHEDULES)


@tool
async def check_agency_requirements(
    context: ToolContext, goods: str, agency: str = "", collections: list[str] | None = None
) -> ToolOutput:
    """Find what agencies ask of an import: permits, filings, marking, documents, in regulations, guides and publications.

    Args:
        goods: what is imported, in plain words, or the question about it.
        agency: one agency by name, such as CBP, FDA or EPA; leave it out for all.
        collections: names of the collections to search; leave it out to search all of them.
    """
    if not goods.strip():
        raise ToolError("Name the goods, or say what you want to know about them.")
    query = " ".join(filter(None, [agency.strip(), "requirements for importing", goods.strip()]))
    return await _search(context, query, collections, REGULATIONS, GUIDES, PUBLICATIONS)


TRADE_TOOLS = Toolset([lookup_hts_code, check_tariffs, check_agency_requirements])
TRADE_BUNDLE = Bundle(
    TRADE,
    lambda: TRADE_TOOLS,
    lambda call: {SCOPE: Scope(call.tenant, None, call.run, call.in_db, call.guard, call.only)},
    filtering=frozenset(TRADE_TOOLS.names()),
)


def hts_code(text: str) -> str:
    """Return a code as the schedules print it, named as one: 8539500010 is HTS 8539.50.0010. Raises ToolError."""
    code = tariff_code(text)
    if code is None:
        raise ToolError(f"{text[:40]!r} isn't a tariff code: give 4, 6, 8 or 10 digits, such as 8539.50.00.")
    return f"HTS {code.text}"


async def _search(
    context: ToolContext,
    query: str,
    collections: list[str] | None,
    *types: str,
    is_lookup: bool = False,
    is_of_code: bool = False,
) -> ToolOutput:
    scope: Scope = context.data[SCOPE]
    search = partial(documents_search, types=types, is_lookup=is_lookup, is_of_code=is_of_code)
    output: ToolOutput = await scope.in_db(search, scope, query, collections or [])
    return output
