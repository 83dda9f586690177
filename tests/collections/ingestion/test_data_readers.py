from __future__ import annotations

from email.message import EmailMessage

import pytest

from apps.collections.ingestion.chunking import chunk_document
from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.types import ReadFailure


def read(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return document_extract(path, name=name)


def test_records_become_a_table_when_json_is_a_flat_list(tmp_path):
    data = '[{"code": "0201.20.04", "rate": 2.50}, {"code": "8539.50.00", "rate": 1e3, "note": "a|b"}]'
    document = read(tmp_path, "a.json", data)
    assert document.text == (
        "| code | rate | note |\n| --- | --- | --- |\n| 0201.20.04 | 2.50 |  |\n"
        "| 8539.50.00 | 1e3 | a\\|b |\n\n"
    )
    assert [c.kind for c in chunk_document(document)] == ["table"]


def test_large_members_become_sections_when_json_is_an_object(tmp_path):
    data = (
        '{"title": "Gr\\u00f6\\u00dfe", "rates": [{"code": "1.2", "r": 1}, {"code": "1.3", "r": 2}],'
        ' "deep": {"a": {"b": ["x", "y"]}}, "title": "twice"}'
    )
    document = read(tmp_path, "a.json", data)
    assert [h.title for h in document.headings] == ["rates", "deep"]
    assert document.text.startswith("title: Größe\ntitle: twice\n")
    assert "a:\n  b:\n    - x\n    - y\n" in document.text
    assert len([r for r in document.regions if r.kind == "table"]) == 1


def test_nothing_is_cut_inside_when_items_are_nested(tmp_path):
    items = ",".join(f'{{"id": {i}, "tags": ["one", "two"], "text": "word {i}"}}' for i in range(300))
    chunks = chunk_document(read(tmp_path, "a.json", f"[{items}]"), size=400, overlap=50)
    assert len(chunks) > 10
    assert all(c.text.startswith("id: ") for c in chunks)


@pytest.mark.parametrize(
    "data",
    [
        '{"a": 1',
        '{"a": 1} trailing',
        "[" * 100_000 + "8539.50.00" + "]" * 100_000,
        '{"a":' * 3000 + '"8539.50.00"' + "}" * 3000,
    ],
)
def test_text_is_kept_with_a_warning_when_json_is_broken_or_too_deep(tmp_path, data):
    document = read(tmp_path, "a.json", data)
    assert document.text.strip() == data.strip()
    assert any("plain text" in warning for warning in document.warnings)


def test_bad_lines_are_kept_and_counted_when_json_lines_are_damaged(tmp_path):
    data = '{"code": "0201.20.04", "deep": [1]}\nnot json 8539.50.00\n\n{"code": "x"}\n'
    document = read(tmp_path, "a.jsonl", data)
    assert document.metadata["records"] == 3
    assert "1 of 3 lines" in document.warnings[0]
    assert "not json 8539.50.00" in document.text
    assert "code: 0201.20.04" in document.text


def test_records_become_a_table_when_json_lines_are_flat(tmp_path):
    data = "".join(f'{{"id": {i}, "what": "lamp {i}"}}\n' for i in range(500))
    chunks = chunk_document(read(tmp_path, "a.ndjson", data))
    assert len(chunks) > 5
    assert all(c.metadata["table_header"].startswith("| id | what |") for c in chunks[1:])


def test_json_is_recognised_when_the_name_says_nothing(tmp_path):
    assert read(tmp_path, "data", '{"a": "some words"}').media_type == "application/json"
    assert read(tmp_path, "data", "{not json} but words").media_type == "text/plain"


def message(**headers: str) -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"] = "Ana <ana@example.org>", "bo@example.org"
    made["Subject"] = headers.get("subject", "Größe der Sendung 8539.50.00")
    made["Date"], made["Message-ID"] = "Fri, 20 Nov 2026 10:00:00 +0000", "<1@example.org>"
    return made


def test_headers_and_plain_text_are_read_when_a_message_has_both_bodies(tmp_path):
    mail = message()
    mail.set_content("Please see 0201.20.04.\n")
    mail.add_alternative("<p>Please see <b>0201.20.04</b>, in HTML.</p>", subtype="html")
    mail.add_attachment(b"%PDF-1.4 ...", maintype="application", subtype="pdf", filename="rates.pdf")
    document = read(tmp_path, "a.eml", mail.as_bytes())
    assert document.title == "Größe der Sendung 8539.50.00"
    assert document.text.startswith("From: Ana <ana@example.org>\nTo: bo@example.org\n")
    assert "0201.20.04" in document.text
    assert "in HTML" not in document.text
    assert "rates.pdf" in document.warnings[0]
    assert document.metadata["attachments"] == [
        {"name": "rates.pdf", "media_type": "application/pdf", "bytes": 12}
    ]


def test_words_of_the_page_are_read_when_a_message_is_html_only(tmp_path):
    mail = message()
    mail.set_content("<style>p{}</style><p>Duty of <i>2.5</i> %</p><p>Code 8539.50.00</p>", subtype="html")
    text = read(tmp_path, "a.eml", mail.as_bytes()).text
    assert "Duty of 2.5 %\nCode 8539.50.00" in text
    assert "p{}" not in text


def test_message_is_recognised_when_the_name_says_nothing(tmp_path):
    mail = message()
    mail.set_content("words")
    assert read(tmp_path, "note", mail.as_bytes()).media_type == "message/rfc822"
    memo = "From: me\nTo: you\nSubject: lunch\n\nA memo is no message.\n"
    assert read(tmp_path, "memo.txt", memo).media_type == "text/plain"


@pytest.mark.parametrize("depth", [60, 3000])
def test_failure_is_typed_when_a_message_is_nested_too_deeply(tmp_path, depth):
    head = "From: a@b.c\nTo: d@e.f\nMessage-ID: <1@b>\nMIME-Version: 1.0\n"
    inner = "Content-Type: text/plain\n\nwords\n"
    for i in range(depth):
        inner = f'Content-Type: multipart/mixed; boundary="b{i}"\n\n--b{i}\n{inner}\n--b{i}--\n'
    with pytest.raises(ReadFailure) as caught:
        read(tmp_path, "a.eml", head + inner)
    assert caught.value.code in {"corrupt_file", "timed_out"}


def test_headers_are_kept_when_they_are_damaged(tmp_path):
    raw = b"From: \xff\xfe <x@y\nSubject: =?utf-8?b?broken?= =?nope?q?x?=\nDate: never\nMessage-ID: <1>\nMIME-Version: 1\n\nCode 8539.50.00 here\n"
    assert "8539.50.00" in read(tmp_path, "a.eml", raw).text


SRT = (
    "1\r\n00:00:01,000 --> 00:00:03,500\r\n<i>The duty on lamps</i>\r\n\r\n"
    "2\r\n00:00:03,500 --> 00:00:05,000\r\n{\\an8}is 2.5 percent, and 1 < 2.\r\n\r\n"
    "3\r\n01:02:06,000 --> 01:02:07,000\r\nIn 2020\r\n\r\n2021 it was\r\n\r\n4\r\n01:02:08,000 --> 01:02:09,000\r\nfree | none.\r\n"
)


def test_sentences_keep_their_times_when_subtitles_are_read(tmp_path):
    document = read(tmp_path, "a.srt", SRT)
    assert document.media_type == "application/x-subrip"
    assert document.text == (
        "| Time | Text |\n| --- | --- |\n"
        "| 00:00:01,000 – 00:00:05,000 | The duty on lamps is 2.5 percent, and 1 < 2. |\n"
        "| 01:02:06,000 – 01:02:09,000 | In 2020 2021 it was free \\| none. |\n\n"
    )
    assert document.metadata == {"cues": 4}
    assert [c.kind for c in chunk_document(document)] == ["table"]


def test_speakers_are_named_and_notes_left_out_when_subtitles_are_webvtt(tmp_path):
    data = (
        "WEBVTT - A talk\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nNOTE to the editor\nnot shown\n\n"
        "opening\n00:01.000 --> 00:03.000 align:start position:0%\n<v.loud Ana>Lamps &amp; bulbs <00:02.000><c.x>cost 1 &lt; 2.</v>\n\n"
        "00:03.000 --> 00:04.000\n<v Ana>Really?\n<v Bo>Yes.\n"
    )
    document = read(tmp_path, "a.vtt", "\ufeff" + data)
    assert document.text == (
        "| Time | Speaker | Text |\n| --- | --- | --- |\n"
        "| 00:01.000 – 00:03.000 | Ana | Lamps & bulbs cost 1 < 2. |\n"
        "| 00:03.000 – 00:04.000 | Ana | Really? |\n| 00:03.000 – 00:04.000 | Bo | Yes. |\n\n"
    )
    assert document.metadata == {"cues": 2}


def test_each_passage_has_the_time_of_what_it_says_when_subtitles_are_long(tmp_path):
    data = "".join(f"{n}\n00:{n:02d}:01,000 --> 00:{n:02d}:09,000\nWord {n} is said.\n\n" for n in range(60))
    chunks = chunk_document(read(tmp_path, "a.srt", data), size=400, overlap=50)
    assert len(chunks) > 5
    for n in range(60):
        assert any(f"00:{n:02d}:01,000 – 00:{n:02d}:09,000 | Word {n} is" in c.text for c in chunks)


def test_subtitles_are_recognised_when_the_name_says_nothing(tmp_path):
    assert read(tmp_path, "data", SRT).media_type == "application/x-subrip"
    assert read(tmp_path, "data", "WEBVTT\n\n00:01.000 --> 00:02.000\nwords\n").media_type == "text/vtt"
    assert read(tmp_path, "data", "WEBVTTING is a word\n").media_type == "text/plain"
    assert read(tmp_path, "a.txt", SRT).media_type == "text/plain"


@pytest.mark.parametrize("data", ["No times at all, but words.\n", "1\n00:00:xx --> never\nwords\n"])
def test_text_is_kept_with_a_warning_when_subtitles_are_damaged(tmp_path, data):
    document = read(tmp_path, "a.srt", data)
    assert document.text == data
    assert "plain text" in document.warnings[0]


@pytest.mark.parametrize("data", ["WEBVTT\n\n", "WEBVTT\n\n00:01.000 --> 00:02.000\n<i></i>\n"])
def test_failure_is_typed_when_subtitles_say_nothing(tmp_path, data):
    with pytest.raises(ReadFailure) as caught:
        read(tmp_path, "a.vtt", data)
    assert caught.value.code == "no_text"


def test_no_word_is_lost_when_a_time_is_damaged(tmp_path):
    data = "1\n00:00:0x,000 --> 00:00:02,000\nOne.\n\n2\n00:00:03,000 --> 00:00:04,000\nTwo\n\n3\n00:00:05 ->\nthree.\n"
    text = read(tmp_path, "a.srt", data).text
    assert text.startswith("1 00:00:0x,000 --> 00:00:02,000 One.\n\n| Time")
    assert "| 00:00:03,000 – 00:00:04,000 | Two 3 00:00:05 -> three. |" in text


def test_packed_file_is_refused_when_it_is_named_like_subtitles(tmp_path):
    with pytest.raises(ReadFailure) as caught:
        read(tmp_path, "a.srt", b"\x1f\x8b\x08\x00" + bytes(range(256)) * 20)
    assert caught.value.code == "unsupported_type"
