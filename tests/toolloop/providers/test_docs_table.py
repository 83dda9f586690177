"""docs/providers.md says what each provider has: the table there is what the code answers, and nothing else."""

from __future__ import annotations

from pathlib import Path

from toolloop.media_types import AUDIO
from toolloop.providers._media import (
    ANTHROPIC_MEDIA,
    COMPATIBLE_MEDIA,
    GOOGLE_MEDIA,
    OPENAI_MEDIA,
    XAI_MEDIA,
    MediaLimits,
)
from toolloop.providers.profiles import DEFAULT_MODELS, Profile, profile_for

DOCS = Path(__file__).resolve().parents[3] / "docs" / "providers.md"
MEDIA: dict[str, MediaLimits] = {
    "openai": OPENAI_MEDIA,
    "xai": XAI_MEDIA,
    "anthropic": ANTHROPIC_MEDIA,
    "google": GOOGLE_MEDIA,
    "compatible": COMPATIBLE_MEDIA,
}


def table() -> str:
    """Write the table from the facts about each provider's first default model."""
    models = {name: DEFAULT_MODELS.get(name, ("any",))[0] for name in MEDIA}
    facts: dict[str, Profile] = {name: profile_for(name, model) for name, model in models.items()}

    def row(label: str, cells: list[str]) -> str:
        return f"| {label} | {' | '.join(cells)} |"

    def yes(values: list[bool]) -> list[str]:
        return ["yes" if value else "no" for value in values]

    profiles = list(facts.values())
    limits = list(MEDIA.values())
    rows = [
        row("", [f"`{name}`" for name in MEDIA]),
        "|---" * (len(MEDIA) + 1) + "|",
        row("facts about", [f"`{model}`" for model in models.values()]),
        row("images", yes([p.image_input for p in profiles])),
        row("PDF files", yes([p.pdf_input for p in profiles])),
        row("audio", [_audio(p, lim) for p, lim in zip(profiles, limits, strict=True)]),
        row("further files", [_files(p, lim) for p, lim in zip(profiles, limits, strict=True)]),
        row("cites passages itself", yes([p.cites_passages for p in profiles])),
        row("URLs instead of bytes", [", ".join(sorted(lim.fetches)) or "no" for lim in limits]),
        row("MB of one image", [str(lim.image * 3 // 4 // 2**20) for lim in limits]),
        row("MB of all files", [str(lim.total * 3 // 4 // 2**20) for lim in limits]),
        row("own web search", yes([p.web_search for p in profiles])),
        row("own file search", yes([p.file_search for p in profiles])),
        row("reads web pages itself", yes([p.web_fetch for p in profiles])),
        row("runs programs itself", yes([p.code_execution for p in profiles])),
        row("own search for deferred tools", yes([p.deferred_tools for p in profiles])),
        row("schema for the answer", [p.structured_output.replace("_", " ") for p in profiles]),
        row("prompt cache", [p.prompt_cache for p in profiles]),
        row("strict tool schemas", yes([p.strict_tools for p in profiles])),
        row("forced tool call", yes([p.forced_tool_choice for p in profiles])),
        row("efforts", [", ".join(p.efforts) or "none" for p in profiles]),
    ]
    return "\n".join(rows)


def _audio(profile: Profile, limits: MediaLimits) -> str:
    names = ", ".join(sorted(AUDIO[kind].upper() for kind in limits.audio))
    return names if profile.audio_input else f"stated: {names}" if names else "no"


def _files(profile: Profile, limits: MediaLimits) -> str:
    return ", ".join(sorted(limits.files)) if profile.file_input else "no"


def test_table_in_the_docs_is_what_the_code_says() -> None:
    assert table() in DOCS.read_text(), f"put this into docs/providers.md:\n\n{table()}\n"
