"""E-mail messages: who, when and what about, then the body; attachments are named, not read."""

from __future__ import annotations

import email
import email.errors
import email.policy
from collections.abc import Iterator
from email.message import EmailMessage, Message
from pathlib import Path

from apps.collections.ingestion import media_types
from apps.collections.ingestion.readers.base import Reading, clean_text, decode_bytes, require_text
from apps.collections.ingestion.readers.html import html_source_text
from apps.collections.ingestion.readers.markdown import markdown_reading
from apps.collections.ingestion.readers.tables import one_line
from apps.collections.ingestion.types import FailureCode, ReaderLimits, ReadFailure
from basics.texts import gettext as _

_HEADERS = ("From", "To", "Cc", "Date", "Subject", "Reply-To", "Message-ID")
_MAX_HEADER = 2000
_MAX_PARTS = 1000
_MAX_DEPTH = 50


class EmlReader:
    """Read a message as it is kept in a file (RFC 5322)."""

    media_types = (media_types.EML,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file.

        Raises:
            ReadFailure: ``corrupt_file``, ``no_text`` or ``too_large``.
        """
        try:
            message = email.message_from_bytes(path.read_bytes(), policy=email.policy.compat32)
            parts = list(_leaves(message))
        except (RecursionError, email.errors.MessageError, ValueError, LookupError) as error:
            raise ReadFailure(
                FailureCode.CORRUPT_FILE,
                _("The message cannot be read; its parts are nested too deeply or damaged. Save it again."),
            ) from error
        lines = [f"{name}: {value}" for name in _HEADERS if (value := _header(message, name))]
        title = _header(message, "Subject")
        text = "\n".join(lines) + "\n\n" + _body(parts)
        attachments = [_attachment(part) for part in parts if _is_attachment(part)]
        require_text(text, limits)
        reading = markdown_reading(text.rstrip() + "\n", title=title)
        reading.metadata.update({"sent_at": _header(message, "Date"), "attachments": attachments[:100]})
        if attachments:
            named = ", ".join(str(item["name"]) for item in attachments[:10])
            said = {"named": named, "n": len(attachments) - 10}
            if len(attachments) > 10:
                warning = (
                    _("Attachments were not read: %(named)s and %(n)s more. Upload the ones you need.") % said
                )
            else:
                warning = _("Attachments were not read: %(named)s. Upload the ones you need.") % said
            reading.warnings.append(warning)
        return reading


def _leaves(message: Message) -> Iterator[Message]:
    """Walk through the parts that hold content, without recursion."""
    waiting: list[tuple[Message, int]] = [(message, 0)]
    count = 0
    while waiting:
        part, depth = waiting.pop()
        count += 1
        if depth > _MAX_DEPTH or count > _MAX_PARTS:
            raise ValueError("more parts than any real message has")
        inner = part.get_payload()
        if isinstance(inner, list) and not _is_forwarded(part):
            waiting.extend((child, depth + 1) for child in reversed(inner) if isinstance(child, Message))
        else:
            yield part


def _is_forwarded(part: Message) -> bool:
    return part.get_content_type() == "message/rfc822"


def _is_attachment(part: Message) -> bool:
    if part.get_content_disposition() == "attachment" or _is_forwarded(part):
        return True
    return not part.get_content_type().startswith(("text/plain", "text/html")) or bool(
        part.get_filename() and part.get_content_disposition() != "inline"
    )


def _body(parts: list[Message]) -> str:
    """Give the plain text, or the words of the HTML where there is none."""
    bodies = [part for part in parts if not _is_attachment(part)]
    plain = [_text(p) for p in bodies if p.get_content_type() == "text/plain"]
    if any(text.strip() for text in plain):
        return "\n\n".join(plain)
    pages = (_text(p) for p in bodies if p.get_content_type() == "text/html")
    return "\n\n".join(_html_words(page) for page in pages)


def _html_words(page: str) -> str:
    lines = (one_line(line) for line in html_source_text(page).split("\n"))
    return "\n".join(line for line in lines if line)


def _text(part: Message) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    charset = part.get_content_charset() or ""
    try:
        return clean_text(data.decode(charset)) if charset else clean_text(decode_bytes(data))
    except (LookupError, UnicodeDecodeError, ValueError):
        # What the message says of its encoding is often wrong.
        return clean_text(decode_bytes(data))


def _header(message: Message, name: str) -> str:
    raw = message.get(name)
    if raw is None:
        return ""
    shown = EmailMessage(policy=email.policy.default)
    try:
        # The modern policy decodes =?utf-8?...?= words; it raises on headers that are damaged.
        shown[name] = str(raw).replace("\r", " ").replace("\n", " ")[:_MAX_HEADER]
        value = str(shown[name])
    except (ValueError, LookupError, IndexError, TypeError, AttributeError, email.errors.MessageError):
        value = str(raw)[:_MAX_HEADER]
    return one_line(clean_text(value))


def _attachment(part: Message) -> dict[str, str | int]:
    data = part.get_payload(decode=True)
    name = clean_text(part.get_filename() or "")
    kind = part.get_content_type()
    return {
        "name": one_line(name)[:200] or ("forwarded message" if _is_forwarded(part) else kind),
        "media_type": kind,
        "bytes": len(data) if isinstance(data, bytes) else 0,
    }
