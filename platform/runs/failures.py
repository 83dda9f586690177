"""What kind of failure a run's error code means, in the reader's language.

The message beside it is the provider's own, or says the details in English: it comes from ``toolloop``, which speaks to
programs.
"""

from __future__ import annotations

from django.utils.translation import gettext_lazy

_KINDS = {
    "rate_limited": gettext_lazy(
        "The model’s provider takes no more requests right now. Try again in a minute."
    ),
    "quota_exhausted": gettext_lazy("The account at the model’s provider has no credit left."),
    "provider_unavailable": gettext_lazy(
        "The model’s provider can’t be reached. Try again, or switch the model."
    ),
    "provider_timeout": gettext_lazy(
        "The model’s provider didn’t answer in time. Try again, or switch the model."
    ),
    "stream_cut": gettext_lazy("The connection to the model’s provider was lost. Ask again."),
    "bad_request": gettext_lazy("The model’s provider refused the request."),
    "unsupported_feature": gettext_lazy("This model can’t do what was asked of it. Switch the model."),
    "media_refused": gettext_lazy("This model can’t read one of the files."),
    "auth_failed": gettext_lazy("The model’s provider refused the key. Ask an admin to check it."),
    "context_too_long": gettext_lazy(
        "The conversation is too long for this model. Start a new one, or switch the model."
    ),
    "content_refused": gettext_lazy("The model’s provider refused the content."),
    "malformed_response": gettext_lazy("The model gave no usable answer. Ask again."),
    "configuration": gettext_lazy("The model isn’t set up correctly."),
    "deadline": gettext_lazy("The answer took too long."),
    "batch_expired": gettext_lazy("The model’s provider didn’t get to this request in time."),
    "batch_cancelled": gettext_lazy("The request was cancelled before the model’s provider got to it."),
}


def failure_kind(code: str) -> str:
    """Return one sentence about a failure that a provider or the loop reported, "" where its own message says it all.

    Args:
        code: of a run that failed.
    """
    return str(_KINDS.get(code, ""))
