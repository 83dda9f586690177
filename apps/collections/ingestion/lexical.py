"""BM25 as sparse vectors: terms of a text, their ids, the term-frequency part for chunks, idf for questions.

The score of a chunk for a question is the inner product of ``tf_weights(chunk)`` and ``{term: idf}`` over shared
terms. Idf goes into the question's vector, so that a new chunk never reweighs the others; only the average length
is frozen into a chunk's vector. Formula: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009).
"""

from __future__ import annotations

import math
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b

from apps.collections.ingestion.identifiers import identifier_list
from apps.collections.ingestion.word_parts import set_apart, word_parts
from toolloop.language_detection import function_words

K1 = 1.2
B = 0.75
# Dimensions of the ``sparsevec`` column, pgvector's limit. Ids count from 0 as in the ``pgvector`` package's
# ``SparseVector(dict, dims)``; its text form adds one by itself.
SPARSE_DIMS = 1_000_000_000
MAX_TERMS = (
    8000  # non-zero entries; pgvector's sparsevec takes 16,000, and 4,000 Chinese letters make up to 8,000
)
_MAX_TERM_CHARS = 200
TERMS_KEPT = 16_384
"""Words of which a process keeps the stem and the id, 5 MB in all: of 1.4 million words of texts 98.5 % were found among so many."""

# Words that carry no topic; negations and numbers are kept.
_STOP = """
    a about above after again all also am an and any are as at be because been before being below between both
    but by can could did do does doing down during each few for from further had has have having he her here
    hers herself him himself his how i if in into is it its itself just me more most my myself of off on once
    only or other our ours ourselves out over own same she should so some such than that the their theirs them
    themselves then there these they this those through to too under until up very was we were what when where
    which while who whom why will with would you your yours yourself yourselves s t d ll m re ve
"""
STOP_WORDS = frozenset(_STOP.split())

# Languages a collection can have; "simple" reduces nothing.

LANGUAGES = tuple(
    """
    simple arabic czech danish dutch english finnish french german greek hindi hungarian indonesian italian
    norwegian persian polish portuguese romanian russian spanish swedish turkish
""".split()
)

VERSION = 3
"""Of the way in which texts become terms; raised when the same text becomes others.

1 knew Latin-like scripts alone, 2 nothing of Chinese and Japanese but pairs of letters.
"""
_WORD = re.compile(r"[^\W_]+")
_local = threading.local()


def form_of(language: str, version: int = VERSION) -> str:
    """Name the form of terms, as rows keep it: a question must be asked in each form that the rows searched have.

    Args:
        language: one of ``LANGUAGES``.
    """
    return f"{version}:{language}"


def form_for(told: str, assumed: str) -> str:
    """Name the form for a text.

    Args:
        told: English name of the language that the text is plainly in, "" where it is not plain.
        assumed: language of its collection; "simple" is for all of its texts, another for those that do not tell.
    """
    own = told.lower()
    return form_of(own if assumed != "simple" and own in LANGUAGES else assumed)


def is_current(form: str) -> bool:
    """Tell whether terms of this form are what ``tokenise`` makes now."""
    return form.startswith(f"{VERSION}:")


def tokenise_as(text: str, form: str, common: frozenset[str] = frozenset()) -> list[str]:
    """List the terms of a text in a form; see ``tokenise``."""
    version, _, language = form.partition(":")
    return tokenise(text, language, version=int(version), common=common)


def tokenise(
    text: str, language: str = "english", *, version: int = VERSION, common: frozenset[str] = frozenset()
) -> list[str]:
    """List the terms of a text in order, repeats included.

    Args:
        text: anything.
        language: one of ``LANGUAGES``.
        version: an earlier ``VERSION``, for questions to rows that were made by it.
        common: words to leave out besides those of the language.

    Words are compatibility-normalised, lower-cased, freed of accents' variants by NFKC, without stop words, and
    stemmed (Snowball) when they have no digits; words with digits stay as they are. Scripts without spaces become pairs
    of letters, with whole words where the script tells them (``apps.collections.ingestion.word_parts``). Every identifier
    (``8539.50.00``, ``get_user_name``, ``getUserName``) counts as a whole besides its parts.
    """
    text = unicodedata.normalize("NFKC", text)
    words = _words_of(text, wholes=version > 2) if version > 1 else _words(text)
    if common:
        words = [word for word in words if word not in common]
    if language == "english":
        terms = [_term(word) for word in words if word not in STOP_WORDS]
    elif language == "simple":
        terms = words
    elif version > 1:
        stops = stop_words(language)
        terms = [
            word if _DIGIT.search(word) else _stem(word, language) for word in words if word not in stops
        ]
    else:
        terms = [_stem(word, language) if word.isalpha() else word for word in words]
    named = set_apart(text) if version > 1 else text
    wholes = [token for token in _identifier_occurrences(named) if len(token) <= _MAX_TERM_CHARS]
    return terms + wholes


@lru_cache(maxsize=TERMS_KEPT)
def term_id(term: str) -> int:
    """Hash a term to 0..SPARSE_DIMS-1; stable over processes and versions.

    Among a million distinct terms about one in a thousand shares its id with another, which costs a little rank,
    never a result.
    """
    digest = blake2b(term.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % SPARSE_DIMS


def tf_weights(
    terms: Iterable[str], average_length: float, *, k1: float = K1, b: float = B
) -> dict[int, float]:
    """Compute the term-frequency part of BM25: ``tf*(k1+1) / (tf + k1*(1-b+b*dl/avgdl))``.

    Args:
        terms: of one chunk, repeats included.
        average_length: terms per chunk over the collection; where unknown, pass the chunk's own length.
        k1: saturation.
        b: share of length normalisation.

    Returns:
        Weight by term id; at most ``MAX_TERMS`` entries, the most frequent terms win.
    """
    counts = Counter(terms)
    length = sum(counts.values())
    if not length:
        return {}
    if average_length <= 0:
        average_length = length
    norm = k1 * (1 - b + b * length / average_length)
    weights: dict[int, float] = {}
    for term, count in counts.most_common(MAX_TERMS):
        key = term_id(term)
        weights[key] = weights.get(key, 0.0) + count * (k1 + 1) / (count + norm)
    return weights


def idf(chunks: int, chunks_with_term: int) -> float:
    """Compute ``ln(1 + (n - df + 0.5) / (df + 0.5))``, which is never negative.

    Args:
        chunks: in the scope that is searched.
        chunks_with_term: of them; more than ``chunks`` (stale counts) is taken as all.
    """
    df = min(max(chunks_with_term, 0), max(chunks, 0))
    return math.log(1 + (max(chunks, 0) - df + 0.5) / (df + 0.5))


def query_weights(text: str, chunks: int, frequencies: Mapping[int, int]) -> dict[int, float]:
    """Compute the vector of a question: idf by term id, once per distinct term.

    Args:
        text: the question.
        chunks: in the scope that is searched.
        frequencies: chunks with the term, by term id; a term that is missing is in no chunk and is left out.
    """
    ids = dict.fromkeys(term_id(term) for term in tokenise(text))
    return {key: idf(chunks, frequencies[key]) for key in ids if frequencies.get(key, 0) > 0}


def query_terms(text: str, forms: Iterable[str]) -> list[str]:
    """List the distinct terms of a question in the forms of the rows that are asked.

    Among several languages the common words of one are rare as terms of another, and would outweigh all that a question
    is about: they are left out of each form, unless nothing else is asked.
    """
    forms = list(forms)
    common: frozenset[str] = frozenset()
    if len(forms) > 1:
        common = common.union(*(stop_words(form.partition(":")[2]) for form in forms))
    found = dict.fromkeys(term for form in forms for term in question_tokenise(text, form, common))
    if not found and common:
        found = dict.fromkeys(term for form in forms for term in question_tokenise(text, form))
    return list(found)


@lru_cache(maxsize=256)
def question_tokenise(text: str, form: str, common: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return what ``tokenise_as`` does, kept: a search asks for passages with it, then which documents its question names."""
    return tuple(tokenise_as(text, form, common))


@lru_cache(maxsize=64)
def stop_words(language: str) -> frozenset[str]:
    """Return the words that are no terms in a language, as ``word_parts`` writes them."""
    if language == "english":
        return STOP_WORDS
    words = " ".join(sorted(function_words(language.title())))
    return frozenset(_words_of(unicodedata.normalize("NFKC", words)))


def query_term_ids(text: str, forms: Iterable[str] = (form_of("english"),)) -> list[int]:
    """List the ids of ``query_terms``, to look their frequencies up."""
    return list(dict.fromkeys(term_id(term) for term in query_terms(text, forms)))


_CAMEL_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_APOSTROPHE = re.compile(r"['’](?=[a-z]{1,2}\b)")
_DIGIT = re.compile(r"\d")


def _words_of(text: str, *, wholes: bool = True) -> list[str]:
    if text.isascii():
        return _words(text)
    return [term for word in word_parts(text, wholes=wholes) for term in _lowered(word)]


def _words(text: str) -> list[str]:
    found = _WORD.findall(_APOSTROPHE.sub(" ", text))
    return [term for word in found for term in _lowered(word)]


def _lowered(word: str) -> list[str]:
    if not word.islower() and not word.isupper() and _CAMEL_BREAK.search(word):
        return [part.lower()[:_MAX_TERM_CHARS] for part in _CAMEL_BREAK.split(word)]
    return [word.lower()[:_MAX_TERM_CHARS]]


def _identifier_occurrences(text: str) -> list[str]:
    # Once per distinct identifier: its parts carry the frequency already.
    return [f"={token}" for token in identifier_list(text)]


def _term(word: str) -> str:
    return _stem(word) if word.isalpha() and word.isascii() else word


@lru_cache(maxsize=TERMS_KEPT)
def _stem(word: str, language: str = "english") -> str:
    stemmers = getattr(_local, "stemmers", None)
    if stemmers is None:
        stemmers = _local.stemmers = {}
    if language not in stemmers:
        import snowballstemmer

        # A stemmer keeps state while it works: one per thread.
        stemmers[language] = snowballstemmer.stemmer(language)
    stem: str = stemmers[language].stemWord(word)
    return stem
