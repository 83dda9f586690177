"""Providers by name, what an environment makes usable, and what it costs to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolloop.errors import ConfigurationError
from toolloop.providers import model_facts, profiles
from toolloop.providers.profiles import Profile, profile_for
from toolloop.providers.registry import (
    configured_models,
    environment_settings,
    is_openai_host,
    make_provider,
    parse_model,
)
from toolloop.tokens import Usage

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", ["openai", "anthropic", "google", "xai"])
@pytest.mark.parametrize("key", ["", "  ", "kéy", "a\nb"])
def test_make_fails_when_the_key_is_missing_or_cannot_be_sent(name: str, key: str) -> None:
    with pytest.raises(ConfigurationError, match="key"):
        make_provider(name, api_key=key)


@pytest.mark.parametrize("name", ["openai", "compatible", "anthropic", "google", "xai"])
@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://", "http://x:port/"])
def test_make_fails_when_the_base_url_cannot_be_used(name: str, url: str) -> None:
    with pytest.raises(ConfigurationError, match="Base URL"):
        make_provider(name, api_key="k", base_url=url)


def test_make_fails_when_a_setting_is_unknown() -> None:
    with pytest.raises(ConfigurationError, match="colour"):
        make_provider("openai", api_key="k", colour="red")
    with pytest.raises(ConfigurationError, match="known:"):
        make_provider("nobody", api_key="k")


@pytest.mark.parametrize(
    ("name", "blocked", "package"),
    [
        ("openai", "openai", "openai"),
        ("xai", "openai", "openai"),
        ("compatible", "openai", "openai"),
        ("anthropic", "anthropic", "anthropic"),
        ("google", "google.genai", "google-genai"),
    ],
)
def test_make_says_what_to_install_when_the_sdk_is_missing(name: str, blocked: str, package: str) -> None:
    """In a fresh interpreter whose import system does not find the SDK."""
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {blocked!r} or name.startswith({blocked + '.'!r}):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "from toolloop.errors import ConfigurationError\n"
        "from toolloop.models import get_model_info, list_models\n"
        "from toolloop.providers.registry import configured_models, make_provider\n"
        f"assert list_models({name!r}) or {name!r} == 'compatible'\n"
        f"assert get_model_info('{name}/x').provider == {name!r}\n"
        "assert configured_models({'OPENAI_API_KEY': 'k', 'ANTHROPIC_API_KEY': 'k', 'GEMINI_API_KEY': 'k'})\n"
        "try:\n"
        f"    make_provider({name!r}, api_key='k', base_url='http://localhost:1/v1')\n"
        "except ConfigurationError as error:\n"
        "    print(error.message)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip().endswith(f"pip install {package}")


async def test_local_providers_need_nothing() -> None:
    extractive = make_provider("extractive", **(environment_settings("extractive", {}) or {}))
    assert extractive.name == "extractive"
    await extractive.aclose()
    scripted = make_provider("scripted", turns=[])
    assert scripted.name == "scripted"
    assert environment_settings("scripted", {}) is None


# --- environment -----------------------------------------------------------------------------------------------------


def ids(env: dict[str, str]) -> set[str]:
    return {model.provider for model in configured_models(env)}


def test_only_extractive_is_there_when_nothing_is_set() -> None:
    models = configured_models({"OPENAI_API_KEY": "  ", "GROUNDWORK_COMPATIBLE_MODELS": "a"})
    assert [m.id for m in models] == ["extractive"]
    assert not models[0].is_language_model
    assert "no language model" in models[0].label


@pytest.mark.parametrize(
    ("variable", "provider"),
    [
        ("OPENAI_API_KEY", "openai"),
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("GEMINI_API_KEY", "google"),
        ("GOOGLE_API_KEY", "google"),
        ("XAI_API_KEY", "xai"),
    ],
)
def test_models_appear_when_a_key_is_set(variable: str, provider: str) -> None:
    models = configured_models({variable: "k"})
    assert {m.provider for m in models} == {provider, "extractive"}
    assert models[0].context_window
    assert all(parse_model(m.id) == (m.provider, m.model) for m in models)


@pytest.mark.parametrize(
    ("url", "is_openai"),
    [
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://API.OpenAI.com/v1", True),
        ("https://api.openai.com.evil.example/v1", False),
        ("https://evil-api.openai.com.example", False),
        ("http://localhost:11434/v1", False),
        ("https://x.openai.azure.com/openai/v1", False),
    ],
)
def test_host_decides_which_wire_an_openai_url_gets(url: str, is_openai: bool) -> None:
    assert is_openai_host(url) is is_openai
    env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url, "GROUNDWORK_COMPATIBLE_MODELS": "a"}
    assert ids(env) == {"openai" if is_openai else "compatible", "extractive"}
    other = environment_settings("compatible" if is_openai else "openai", env)
    assert other is None, "the key belongs to one host only"


def test_compatible_server_needs_no_key_and_offers_the_models_named() -> None:
    env = {
        "GROUNDWORK_COMPATIBLE_BASE_URL": "http://localhost:11434/v1/",
        "GROUNDWORK_COMPATIBLE_MODELS": "llama3:8b, org/qwen3,, llama3:8b",
    }
    models = [m.id for m in configured_models(env) if m.provider == "compatible"]
    assert models == ["compatible/llama3:8b", "compatible/org/qwen3"]
    assert environment_settings("compatible", env) == {"base_url": "http://localhost:11434/v1", "api_key": ""}


def test_explicit_compatible_server_wins_over_a_bare_openai_url() -> None:
    env = {
        "OPENAI_BASE_URL": "http://localhost:1/v1",
        "OPENAI_API_KEY": "of-one",
        "GROUNDWORK_COMPATIBLE_BASE_URL": "http://localhost:2/v1",
        "GROUNDWORK_COMPATIBLE_API_KEY": "of-two",
    }
    assert environment_settings("compatible", env) == {
        "base_url": "http://localhost:2/v1",
        "api_key": "of-two",
    }
    assert environment_settings("openai", env) is None


def test_settings_of_the_environment_make_providers() -> None:
    env = {
        "OPENAI_API_KEY": "k",
        "OPENAI_ORG_ID": "org",
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": "http://localhost:4010",
        "GEMINI_API_KEY": "loses",
        "GOOGLE_API_KEY": "wins",
        "GROUNDWORK_GEMINI_API_VERSION": "v1beta",
        "XAI_API_KEY": "k",
        "GROUNDWORK_COMPATIBLE_BASE_URL": "http://localhost:2/v1",
    }
    for name in ("openai", "anthropic", "google", "xai", "compatible"):
        settings = environment_settings(name, env)
        assert settings is not None
        assert make_provider(name, **settings).name == name
    google = environment_settings("google", env)
    assert google == {"api_key": "wins", "base_url": None, "api_version": "v1beta"}


@pytest.mark.parametrize(
    "variable",
    ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "GROUNDWORK_COMPATIBLE_BASE_URL"],
)
def test_a_wrong_url_is_named_by_its_variable(variable: str) -> None:
    env = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k"}
    with pytest.raises(ConfigurationError, match=variable):
        configured_models({**env, variable: "localhost:11434"})


# --- profiles --------------------------------------------------------------------------------------------------------


def test_longest_prefix_wins() -> None:
    assert profile_for("openai", "gpt-4.1-mini-2025-04-14") is profile_for("openai", "gpt-4.1-mini")
    assert profile_for("openai", "gpt-4.1-mini") is not profile_for("openai", "gpt-4.1")
    assert profile_for("anthropic", "claude-sonnet-5-5").forced_tool_choice is False
    assert profile_for("anthropic", "claude-sonnet-5").forced_tool_choice is True
    assert profile_for("google", "models/gemini-2.5-pro") is profile_for("google", "gemini-2.5-pro")


def test_rows_of_one_provider_do_not_match_another() -> None:
    assert profile_for("compatible", "gpt-4.1") is profile_for("compatible", "anything")
    assert profile_for("nobody", "x") == Profile()


def test_every_default_model_has_its_own_row_and_a_window() -> None:
    for provider, models in profiles.DEFAULT_MODELS.items():
        for model in models:
            assert profile_for(provider, model) is not profile_for(provider, "no-such-model")
            assert profile_for(provider, model).context_window, model


def test_effort_names_have_a_thinking_budget_where_budgets_are_used() -> None:
    from toolloop.providers.anthropic import _THINKING_BUDGETS as ANTHROPIC_BUDGETS
    from toolloop.providers.google import _THINKING_BUDGETS as GOOGLE_BUDGETS

    budgets = {"anthropic": ANTHROPIC_BUDGETS, "google": GOOGLE_BUDGETS}
    for (provider, _), profile in model_facts.ROWS.items():
        if profile.thinking == "budget":
            assert set(profile.efforts) <= set(budgets[provider])


def test_cost_counts_cached_and_written_tokens_at_their_own_price() -> None:
    usage = Usage(1_000_000, cached_read=400_000, cache_write=100_000, output_total=10_000)
    cost = profile_for("anthropic", "claude-haiku-4-5").cost_usd(usage)
    assert cost == pytest.approx(0.5 * 1.0 + 0.4 * 0.10 + 0.1 * 1.25 + 0.01 * 5.0)


def test_cost_uses_the_tier_of_the_prompt() -> None:
    profile = profile_for("openai", "gpt-6-luna")
    assert profile.cost_usd(Usage(272_000)) == pytest.approx(0.272 * 0.10)
    assert profile.cost_usd(Usage(272_001)) == pytest.approx(0.272001 * 0.20)
    assert profile_for("compatible", "llama3").cost_usd(Usage(1_000)) is None
    assert profile_for("extractive", "extractive").cost_usd(Usage(1_000)) == 0


# --- imports ---------------------------------------------------------------------------------------------------------


def test_no_sdk_is_imported_before_an_adapter_is_made() -> None:
    code = (
        "import sys\n"
        "import toolloop.providers.registry as r\n"
        "import toolloop.providers.openai, toolloop.providers.xai, toolloop.providers.compatible\n"
        "import toolloop.providers.anthropic, toolloop.providers.google\n"
        "r.configured_models({'OPENAI_API_KEY': 'k'})\n"
        "heavy = {'openai', 'anthropic', 'google.genai', 'httpx2', 'django', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]"


def test_model_names_stand_in_the_facts_and_the_routing_only() -> None:
    folder = ROOT / "platform" / "toolloop"
    families = ("gpt-", "grok-", "claude-", "gemini-")
    for path in folder.rglob("*.py"):
        if path.name in {"model_facts.py", "tier_facts.py", "routing.py"}:
            continue
        text = path.read_text().lower()
        assert not [f'"{name}' for name in families if f'"{name}' in text], path
