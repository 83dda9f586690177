"""Sentences end where a reader would say so: not after abbreviations, initials and numbers, in any script."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.walked import each
from toolloop.sentences import sentence_spans


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@each(
    "sentences",
    [
        ["Cars of No. 12 pay 2.5 percent under 19 U.S.C. 1304 and the U.S.", "The rate is e.g. 5 %."],
        ["Mr. J. Smith of Acme Inc. signed, see Fig. 3 and sec. 4.", "Done!"],
        ["The answer is no.", "Trucks pay 25.", "Bikes are free."],
        ["A. By amending it: b. The goods of heading 8703 are free."],
        ["Section 3. The Secretary shall act.", "J. Doe acts."],
        ["ETA 1.1.2. Training prepares workers.", "It is free."],
        ["He said “Go.”", "Then he left.", "(See below.)"],
        ["Ducks fly.[5][6]", "They swim.12", "The end is near..."],
        ["[FR Doc. 2025-15804 Filed 8-18-25; 8:45 a.m.]"],
        ["The vote is at 5 p.m.", "The house is full."],
        ["Am 3. Mai 2024 begann es.", "Nach Art. 5 Abs. 2 gilt z. B. das Gesetz, vgl. S. 12."],
        ["Voir l’art. 5, p. 12.", "Les droits sont de 5 %."],
        ["これは文です。", "次の文です！", "「はい。」と言った。"],
        ["税率为百分之五。", "卡车除外。"],
        ["هل هذا سؤال؟", "نعم هذا هو."],
        ["यह वाक्य है।", "दूसरा वाक्य है।"],
        ["2020.3.11. 세계보건기구가 선언하였다.", "그러나 아니다."],
        ["ราคาของสินค้าคือห้าสิบบาท สินค้าใหม่มาแล้ว"],
        ["Contents ........ 5"],
        # What brackets hold belongs to the sentence around them.
        ["It was denied (E.D. Mo. 2024).", "She paid (he had not. He was away.) and left.", "It is over."],
        ["(See part 2.", "It holds.)"],
        # So does a quotation that it leads up to; one that it begins with is cut like any text.
        ['He wrote: "It is due. Pay it now."', "Then he left.", '"I came.', 'I saw."'],
        [
            'A note: "the duty. [12] The".',
            'A 5" pipe.',
            'The 3" pipe is “new. It is.”',
            'It says "half.',
            "And so on.",
        ],
        [
            '"I came. I saw." he said.',
            "“Part 3. It applies”: what heads it is no sentence.",
            '"I left."',
            "He did.",
        ],
        ["Er sagte: „Das gilt. Und das.“", "Danach ging er.", "Il dit « Oui. Non. » et part."],
        ["「行く。帰る。」と言った。", "そうか!", "（注。", "例を見よ。）"],
        ["真的吗!?", "是的。"],
        # Marks of notes stand behind the sentence's end.
        [
            "Is it free?1",
            "It is!2",
            "He said “no.”3",
            "They pay.[^4]",
            "We pay.¹²",
            "All pay. [5]",
            "None does.",
        ],
        ["[1] See the letter.", "[2] It is old."],
        ["من يدفع؟1", "لا أحد.[2]", "نعم."],
        ["谁付？[1]", "没有人。²", "是的。"],
    ],
)
def test_sentences_are_cut_at_their_ends_alone(sentences: list[str]) -> None:
    is_spaced = not any("\u3000" <= ch <= "\u9fff" for ch in sentences[0])
    joined = (" " if is_spaced else "").join(sentences)
    assert cut(joined) == sentences
    assert cut(joined.replace(" ", "\n")) == [s.replace(" ", "\n") for s in sentences]


@given(st.text(max_size=300))
def test_spans_are_in_order_and_leave_out_nothing_but_blanks(text: str) -> None:
    spans = sentence_spans(text)
    assert all(a < b for a, b in spans)
    assert all(one[1] <= two[0] for one, two in pairwise(spans))
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())
