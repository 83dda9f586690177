from __future__ import annotations

import math
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.collections.ingestion import lexical


def test_words_are_stemmed_and_stop_words_dropped_when_plain():
    assert lexical.tokenise("The agencies were running the Programs") == ["agenc", "run", "program"]


def test_identifier_counts_whole_and_in_parts_when_text_has_one():
    terms = lexical.tokenise("duty on 8539.50.00 by getUserName")
    assert {"=8539.50.00", "8539", "50", "00", "=getusername", "get", "user", "name"} <= set(terms)


def test_same_terms_come_when_the_same_word_is_written_otherwise():
    assert lexical.tokenise("ＴＡＲＩＦＦ ﬁle") == lexical.tokenise("tariff file")
    assert lexical.tokenise("the agency's") == lexical.tokenise("agency")


def test_term_id_is_stable_when_computed_in_another_process():
    assert lexical.term_id("tariff") == 538_949_777
    code = "from apps.collections.ingestion.lexical import term_id; print(term_id('tariff'))"
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "platform:.", "PYTHONHASHSEED": "7"},
    )
    assert int(out.stdout) == lexical.term_id("tariff")


@given(st.text(max_size=300))
def test_ids_fit_the_column_when_text_is_anything(text):
    weights = lexical.tf_weights(lexical.tokenise(text), 20.0)
    assert all(0 <= key < lexical.SPARSE_DIMS for key in weights)
    assert all(0 < weight < lexical.K1 + 1 for weight in weights.values())


def test_weight_follows_the_formula():
    weights = lexical.tf_weights(["a", "a", "b"], 6.0, k1=1.2, b=0.75)
    norm = 1.2 * (0.25 + 0.75 * 3 / 6)
    assert weights[lexical.term_id("a")] == pytest.approx(2 * 2.2 / (2 + norm))
    assert weights[lexical.term_id("b")] == pytest.approx(2.2 / (1 + norm))
    assert lexical.tf_weights([], 6.0) == {}
    assert lexical.tf_weights(["a"], 0.0)[lexical.term_id("a")] == pytest.approx(1.0)


def test_entries_are_capped_when_a_chunk_has_too_many_terms():
    terms = [f"t{i}" for i in range(lexical.MAX_TERMS + 2000)] + ["often"] * 5
    weights = lexical.tf_weights(terms, 100.0)
    assert lexical.MAX_TERMS - 20 < len(weights) <= lexical.MAX_TERMS
    assert lexical.term_id("often") in weights


def test_idf_falls_with_frequency_and_is_never_negative():
    values = [lexical.idf(1000, df) for df in (0, 1, 10, 500, 1000, 5000)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > 0
    assert lexical.idf(10, 3) == pytest.approx(math.log(1 + 7.5 / 3.5))
    assert lexical.idf(0, 0) > 0


def test_query_leaves_out_terms_that_are_in_no_chunk():
    frequencies = {lexical.term_id("tariff"): 3}
    weights = lexical.query_weights("Which tariff, tariffs or unicorns?", 100, frequencies)
    assert weights == {lexical.term_id("tariff"): lexical.idf(100, 3)}


def test_query_ids_are_distinct_and_ordered():
    ids = lexical.query_term_ids("steel tariff steel")
    assert ids == [lexical.term_id("steel"), lexical.term_id("tariff")]


def test_stems_agree_when_many_threads_stem_at_once():
    words = [
        f"{stem}{end}"
        for stem in ("nation", "regul", "organiz", "comput")
        for end in ("al", "ation", "ing", "ed")
    ]
    text = " ".join(words * 50)
    lexical._stem.cache_clear()
    expected = lexical.tokenise(text)
    lexical._stem.cache_clear()
    results: list[list[str]] = []
    threads = [threading.Thread(target=lambda: results.append(lexical.tokenise(text))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


@pytest.mark.parametrize(
    ("language", "asked", "written"),
    [
        ("english", "全球变暖", "报告说全球变暖正在加快。"),
        ("english", "水", "饮用水质"),
        ("english", "全球变暖", "全球\n变暖"),
        ("english", "ガンダム", "ｶﾞﾝﾀﾞﾑの歴史"),
        ("english", "ＡＢＣ１２３", "型番abc123の仕様"),
        ("english", "8539.50.00", "产品编号8539.50.00的关税"),
        ("english", "GDP", "北京2024年的GDP是多少"),
        ("english", "ภาษาไทย", "เรียนภาษาไทยที่บ้าน"),
        ("english", "ប្រទេស", "នៅក្នុងប្រទេស\u200bកម្ពុជា"),
        ("english", "မြန်မာ", "မြန်မာနိုင်ငံ"),
        ("english", "ປະເທດ", "ປະເທດລາວ"),
        ("english", "대통령", "대통령은"),
        ("simple", "हिन्दी", "यह हिन्दी है"),
        ("simple", "२०२४", "वर्ष 2024 में"),
        ("simple", "كتاب", "كِتَابٌ"),
        ("simple", "الأمم", "الامم"),
        ("simple", "שלום", "שָׁלוֹם"),
        ("simple", "елка", "ёлка"),
        ("simple", "İstanbul", "istanbul"),
        ("german", "Lampe", "die Lampen"),
        ("hindi", "लड़का", "लड़के"),
        ("russian", "лампа", "лампы"),
    ],
)
def test_question_shares_terms_with_a_text_in_any_script(language: str, asked: str, written: str) -> None:
    wanted = set(lexical.tokenise(asked, language))
    assert wanted
    assert wanted & set(lexical.tokenise(written, language))


@pytest.mark.parametrize("text", ["中国的首都北京有多少人口", "ประเทศไทย", "ប្រទេស", "ひらがな"])
def test_letters_without_spaces_make_pairs_and_no_long_runs(text: str) -> None:
    assert max(len(term) for term in lexical.tokenise(text)) < len(text)


@pytest.mark.parametrize(
    ("asked", "written", "shared"),
    [
        ("首都はどこか", "フランスの首都はパリである", "|首都"),
        ("ヴァイオリンの歴史", "バイオリンは弦楽器である", "|バイオリン"),
        ("コンピューターとは", "コンピュータの種類", "|コンピュータ"),
        ("サーバーの設定", "ｻｰﾊﾞの構成", "|サーバ"),
        ("フィルムの感度", "フイルムを使う", "|フイルム"),
        ("十五日以内に", "15日までに", "15日"),
        ("一九四九年の選挙", "1949年に", "1949年"),
        ("２０２１年", "二〇二一年に", "2021年"),
        ("千二百円の品", "1200円で売る", "1200円"),
        ("二万五千人", "25000人が来た", "25000人"),
        ("第三条の規定", "第3条による", "3条"),
        ("GDP率", "名目GDP率", "gdp率"),
    ],
)
def test_words_and_counts_between_scripts_are_terms_in_any_spelling(
    asked: str, written: str, shared: str
) -> None:
    assert shared in set(lexical.tokenise(asked)) & set(lexical.tokenise(written))


@pytest.mark.parametrize(
    ("one", "other"), [("ビル", "ビール"), ("首都", "首都圏"), ("一般", "一人"), ("コピー", "コピ")]
)
def test_words_that_differ_stay_apart(one: str, other: str) -> None:
    def wholes(text: str) -> set[str]:
        return {term for term in lexical.tokenise(text) if term.startswith("|")}

    assert wholes(one)
    assert not wholes(one) & wholes(other)


def test_earlier_form_knows_pairs_alone() -> None:
    assert lexical.tokenise("首都は15日", version=2) == ["首都", "都は", "首", "都", "15", "日"]


def test_word_keeps_its_marks_together() -> None:
    assert lexical.tokenise("हिन्दी में", "simple") == ["हिन्दी", "में"]


@given(st.text(alphabet=st.characters(max_codepoint=0x2FFFF), max_size=60))
def test_every_language_and_version_takes_any_text(text: str) -> None:
    for language in lexical.LANGUAGES:
        for version in range(1, lexical.VERSION + 1):
            form = lexical.form_of(language, version)
            assert all(lexical.query_terms(text, [form]))


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=200))
def test_plain_ascii_has_the_terms_it_always_had(text: str) -> None:
    assert lexical.tokenise(text) == lexical.tokenise(text, version=1)


def test_common_words_of_one_language_are_not_asked_for_in_another() -> None:
    forms = [lexical.form_of("english"), lexical.form_of("german")]
    asked = lexical.query_terms("What does the duty on lamps?", forms)
    assert asked == ["duti", "lamp", "duty", "lamps"]
    assert lexical.query_terms("Was ist der Zoll auf Lampen?", forms) == ["zoll", "lampen", "lamp"]
    assert lexical.query_terms("What is it?", forms)  # nothing else is asked
    assert lexical.query_terms("die", [lexical.form_of("english")]) == ["die"]


def test_form_is_the_texts_own_unless_the_collection_reduces_nothing() -> None:
    assert lexical.form_for("German", "english") == lexical.form_of("german")
    assert lexical.form_for("Chinese", "english") == lexical.form_of("english")
    assert lexical.form_for("", "russian") == lexical.form_of("russian")
    assert lexical.form_for("German", "simple") == lexical.form_of("simple")
    assert lexical.is_current(lexical.form_of("german"))
    assert not lexical.is_current("1:german")
