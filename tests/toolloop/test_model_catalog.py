"""Which model a name means, what is known about it, and what somebody states over that."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from toolloop import models
from toolloop.errors import ConfigurationError
from toolloop.models import (
    CAPABILITIES,
    ModelCatalog,
    ModelOverride,
    Route,
    compute_cost,
    get_model_info,
    is_endpoint_name,
    list_models,
    model_route,
    parse_model,
)
from toolloop.providers.model_facts import DEFAULT_MODELS, MODELS, ROWS
from toolloop.providers.profiles import Prices, profile_for
from toolloop.providers.registry import PROVIDERS
from toolloop.tokens import Usage

ROOT = Path(__file__).resolve().parents[2]
MILLION = Usage(input_total=1_000_000, output_total=1_000_000)


# --- routing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "written", "provider", "model"),
    [
        ("openai/gpt-6-luna", "openai/gpt-6-luna", "openai", "gpt-6-luna"),
        ("anthropic/claude-x", "anthropic/claude-x", "anthropic", "claude-x"),
        ("google/gemini-x", "google/gemini-x", "google", "gemini-x"),
        ("gemini/gemini-x", "google/gemini-x", "google", "gemini-x"),
        ("xai/grok-x", "xai/grok-x", "xai", "grok-x"),
        ("compatible/llama3:8b", "compatible/llama3:8b", "compatible", "llama3:8b"),
        ("compatible/org/m", "compatible/org/m", "compatible", "org/m"),
        ("compatible//srv/models/m", "compatible//srv/models/m", "compatible", "/srv/models/m"),
        ("compatible/default/m", "compatible/m", "compatible", "m"),
        ("compatible/default", "compatible/default", "compatible", "default"),
        ("extractive", "extractive", "extractive", "extractive"),
        ("scripted/a", "scripted/a", "scripted", "a"),
        ("gpt-5", "openai/gpt-5", "openai", "gpt-5"),
        ("chatgpt-4o-latest", "openai/chatgpt-4o-latest", "openai", "chatgpt-4o-latest"),
        ("o1", "openai/o1", "openai", "o1"),
        ("o3-mini", "openai/o3-mini", "openai", "o3-mini"),
        ("o4-mini-2025-04-16", "openai/o4-mini-2025-04-16", "openai", "o4-mini-2025-04-16"),
        ("claude-opus-5-5", "anthropic/claude-opus-5-5", "anthropic", "claude-opus-5-5"),
        ("gemini-2.5-pro", "google/gemini-2.5-pro", "google", "gemini-2.5-pro"),
        (" grok-4.5 ", "xai/grok-4.5", "xai", "grok-4.5"),
    ],
)
def test_name_is_routed(name: str, written: str, provider: str, model: str) -> None:
    assert model_route(name) == Route(written, provider, model)
    assert parse_model(name) == (provider, model)
    assert model_route(written) == Route(written, provider, model), "the written form means the same"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "openai",
        "openai/",
        "compatible/",
        "/gpt-5",
        "unknown/x",
        "OpenAI/gpt-5",
        "gpt",
        "gpt-",
        "o5-mini",
        "o1x",
        "o10",
        "llama3",
        "claude",
        "gpt-5/../x",
        "openai/gpt-5\nx",
        "openai/gpt 5",
        "openai/gpt-5\u200b",
        "compatible/a\x00b",
    ],
)
def test_error_lists_what_is_possible_when_a_name_means_nothing(name: str) -> None:
    with pytest.raises(ConfigurationError, match="<provider>/<model>") as caught:
        model_route(name, ["lab"])
    for possible in ("openai/", "gemini/", "compatible/", "gpt-", "grok-", "extractive", "lab"):
        assert possible in caught.value.message


def test_known_endpoint_names_decide_what_compatible_means() -> None:
    known = ["lab", "gpu-2"]
    lab = model_route("compatible/lab/org/m", known)
    assert lab == Route("compatible/lab/org/m", "compatible", "org/m", "lab")
    assert model_route("compatible/lab/org/m") == Route("compatible/lab/org/m", "compatible", "lab/org/m")
    assert model_route("compatible/laboratory/m", known).endpoint == ""
    assert model_route("compatible/Lab/m", known).endpoint == ""


@pytest.mark.parametrize("name", ["compatible/lab", "compatible/lab/"])
def test_endpoint_without_a_model_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="isn't a model name"):
        model_route(name, ["lab"])


def test_default_endpoint_stays_reachable_when_its_model_begins_like_an_endpoint() -> None:
    route = model_route("compatible/default/lab/m", ["lab"])
    assert route == Route("compatible/default/lab/m", "compatible", "lab/m")
    assert model_route(route.id, ["lab"]) == route
    assert model_route("compatible/default/lab/m").id == "compatible/lab/m"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "default",
        "openai",
        "gemini",
        "google",
        "compatible",
        "extractive",
        "Lab",
        "lab/x",
        "lab x",
        "-lab",
        "läb",
        "a" * 31,
        "..",
        "lab\n",
    ],
)
def test_endpoint_name_is_refused_when_it_could_mean_something_else(name: str) -> None:
    assert not is_endpoint_name(name)


@pytest.mark.parametrize("name", ["lab", "gpu-2", "0", "a" * 30])
def test_endpoint_name_is_taken(name: str) -> None:
    assert is_endpoint_name(name)


def test_every_prefix_leads_to_a_provider_there_is() -> None:
    from toolloop.models.routing import PREFIXES

    assert set(PREFIXES.values()) == set(PROVIDERS)


def test_prefixes_of_bare_names_stand_in_the_routing_only() -> None:
    """Facts about models live in the catalog, never as name checks in code."""
    allowed = {"routing.py", "model_facts.py"}
    check = re.compile(r"""startswith\(\s*\(?["'](gpt|o[1-4]|chatgpt|claude|gemini|grok)""")
    for folder in ("platform", "apps"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.name not in allowed:
                assert not check.search(path.read_text()), path


# --- built-in facts --------------------------------------------------------------------------------------------------


def test_default_models_are_listed_first_and_none_has_an_end() -> None:
    for provider, names in DEFAULT_MODELS.items():
        listed = [info.model for info in list_models(provider)]
        assert listed[: len(names)] == list(names)
        assert MODELS[provider][: len(names)] == names


def test_list_filters_by_provider_capability_and_end() -> None:
    everything = list_models(include_deprecated=True)
    assert len({info.id for info in everything}) == len(everything)
    assert all(info.is_known for info in everything)
    assert {info.provider for info in list_models("gemini")} == {"google"}
    ended = [info for info in everything if info.deprecated_on]
    assert ended
    assert not {info.id for info in ended} & {info.id for info in list_models()}
    for capability in CAPABILITIES:
        having = list_models(capability=capability, include_deprecated=True)
        assert having == [info for info in everything if capability in info.capabilities]
        assert having, capability


@pytest.mark.parametrize("call", [{"provider": "nobody"}, {"capability": "colour"}])
def test_list_refuses_a_filter_nobody_knows(call: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="; known: "):
        list_models(**call)  # type: ignore[arg-type]


def test_facts_of_a_model_are_answered_by_any_of_its_names() -> None:
    info = get_model_info("claude-opus-5-5")
    assert info == get_model_info("anthropic/claude-opus-5-5")
    assert info.context_window == 1_000_000
    assert info.prompt_cache == "marked"
    assert {"tools", "reasoning", "image_input", "pdf_input", "deferred_tools"} <= set(info.capabilities)
    assert "file_search" not in info.capabilities
    unknown = get_model_info("openai/never-heard-of")
    assert not unknown.is_known
    assert unknown.profile == profile_for("openai", "never-heard-of")


def test_ends_and_successors_are_told() -> None:
    ended = get_model_info("gpt-4.1")
    assert (ended.deprecated_on, ended.replaced_by) == ("2027-01-14", "gpt-6.1-terra")
    for (provider, _), profile in ROWS.items():
        if profile.deprecated_on:
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", profile.deprecated_on)
        if profile.replaced_by:
            assert not profile_for(provider, profile.replaced_by).deprecated_on


def test_variants_that_cost_a_multiple_are_not_priced_like_their_family() -> None:
    for name in ("o3-deep-research", "gpt-4o-audio-preview", "gpt-5-of-tomorrow"):
        assert compute_cost(name, MILLION) is None
    for name, family in (("gpt-5-pro", "gpt-5"), ("gpt-5.2-pro", "gpt-5.2"), ("o3-pro", "o3")):
        assert (compute_cost(name, MILLION) or 0) >= 10 * (compute_cost(family, MILLION) or 0) > 0


def test_cost_follows_the_tier() -> None:
    small, large = Usage(200_000, output_total=1_000), Usage(300_000, output_total=1_000)
    assert compute_cost("gpt-6.1-sol", small) == pytest.approx(0.2 * 2 + 0.001 * 10)
    assert compute_cost("gpt-6.1-sol", large) == pytest.approx(0.3 * 4 + 0.001 * 15)
    assert compute_cost("compatible/llama3", small) is None


# --- overrides -------------------------------------------------------------------------------------------------------


def test_override_changes_what_it_states_and_nothing_else() -> None:
    override = ModelOverride(
        "gpt-6-luna",
        label="Ours",
        max_output_tokens=1_000,
        prices=(Prices(7.0, 8.0),),
        capabilities={"web_search": False},
    )
    catalog = ModelCatalog([override])
    info, plain = catalog.get_model_info("openai/gpt-6-luna"), get_model_info("gpt-6-luna")
    assert (info.label, info.max_output_tokens) == ("Ours", 1_000)
    assert set(plain.capabilities) - set(info.capabilities) == {"web_search"}
    assert info.context_window == plain.context_window
    assert catalog.compute_cost("gpt-6-luna", MILLION) == 15.0
    assert compute_cost("gpt-6-luna", MILLION) != 15.0, "the built-in facts stay what they are"
    assert catalog.get_model_info("gpt-6-sol") == get_model_info("gpt-6-sol")


def test_addition_is_listed_and_found_by_its_endpoint() -> None:
    added = ModelOverride("compatible/lab/m", context_window=8_000, capabilities={"tools": False})
    catalog = ModelCatalog([added], endpoints=["lab"])
    [info] = catalog.list_models("compatible")
    assert (info.endpoint, info.model, info.context_window) == ("lab", "m", 8_000)
    assert "tools" not in info.capabilities
    assert info.label == "m (lab)"
    assert catalog.profile("compatible/lab/m").context_window == 8_000
    assert catalog.profile("compatible/m").context_window is None
    assert list_models("compatible") == []


def test_hidden_model_is_not_listed_and_says_so() -> None:
    catalog = ModelCatalog([ModelOverride("openai/gpt-6-luna", is_hidden=True)])
    assert catalog.is_hidden("gpt-6-luna")
    assert "openai/gpt-6-luna" not in {info.id for info in catalog.list_models()}
    assert "openai/gpt-6-luna" in {info.id for info in list_models()}


def test_empty_prices_mean_unknown_and_zero_means_free() -> None:
    catalog = ModelCatalog(
        [ModelOverride("gpt-6-luna", prices=()), ModelOverride("gpt-6-sol", prices=(Prices(0.0, 0.0),))]
    )
    assert catalog.compute_cost("gpt-6-luna", MILLION) is None
    assert catalog.compute_cost("gpt-6-sol", MILLION) == 0.0


@pytest.mark.parametrize(
    ("capabilities", "structured", "thinking"),
    [
        ({"structured_output": True, "reasoning": True}, "always", "effort"),
        ({"structured_output": False, "reasoning": False}, "never", "none"),
    ],
)
def test_capabilities_become_what_adapters_read(
    capabilities: dict[str, bool], structured: str, thinking: str
) -> None:
    profile = ModelCatalog([ModelOverride("compatible/m", capabilities=capabilities)]).profile("compatible/m")
    assert (profile.structured_output, profile.thinking) == (structured, thinking)
    assert bool(profile.efforts) is capabilities["reasoning"]


def test_stating_a_capability_that_is_there_keeps_how_it_works() -> None:
    stated = {"structured_output": True, "reasoning": True}
    catalog = ModelCatalog([ModelOverride("gemini-2.5-pro", capabilities=stated)])
    assert catalog.profile("gemini-2.5-pro") == profile_for("google", "gemini-2.5-pro")


@pytest.mark.parametrize("price", [-0.01, math.nan, math.inf, -math.inf, True, "1"])
@pytest.mark.parametrize("place", ["input", "output", "cached_read", "cache_write"])
def test_price_is_refused_when_a_cost_limit_could_not_work_with_it(price: float, place: str) -> None:
    values = {"input": 1.0, "output": 1.0, place: price}
    with pytest.raises(ConfigurationError, match="price"):
        Prices(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"context_window": 0},
        {"max_output_tokens": -1},
        {"capabilities": {"colour": True}},
        {"prices": (Prices(1, 1, above_tokens=5),)},
        {"prices": (Prices(1, 1), Prices(2, 2))},
        {"prices": (Prices(1, 1), Prices(2, 2, above_tokens=9), Prices(3, 3, above_tokens=3))},
    ],
)
def test_override_is_refused_when_it_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        ModelOverride("gpt-6-luna", **wrong)  # type: ignore[arg-type]


def test_module_functions_answer_from_one_catalog() -> None:
    assert models.default_catalog() is models.default_catalog()
    assert models.default_catalog().list_models() == list_models()


def test_example_of_the_page_runs() -> None:
    page = (ROOT / "docs" / "providers.md").read_text()
    [example] = [
        code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "ModelCatalog(" in code
    ]
    names: dict[str, object] = {}
    exec(compile(example, "docs/providers.md", "exec"), names)  # noqa: S102 - our own page
    assert names["profile"] != profile_for("openai", "gpt-6.1-terra")
