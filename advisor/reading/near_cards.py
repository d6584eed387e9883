"""The cards that are nearest to a name that none has: of one family, a digit or a mark away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice

from msgspec import Struct

from advisor.errors import RequestError
from advisor.knowledge.catalogue import MAKERS, MOST_CARDS
from advisor.knowledge.index import (
    gpu_core,
    is_board_word,
    is_size_word,
    makers_named,
    spellings_of,
)
from advisor.knowledge.merit_scale import card_names
from advisor.knowledge.types import Knowledge
from advisor.memo import by_identity
from advisor.reading.name_parts import unsized_card
from advisor.reading.near import counts_in, less_noise, with_zeros
from advisor.reading.spoken import words_of

_MOST, _LONGEST = 3, 200
_OTHERWISE = "Try 'advisor knowledge find WORD'."


def unknown_card(knowledge: Knowledge, text: str) -> RequestError:
    """Say that no card is called this, with the nearest that are."""
    message, known = f"unknown GPU '{text}'.", unsized_card(text)
    if known:
        return known[0]
    boards = _of_series(knowledge, text)
    if boards or not gpu_core(text):
        few = " or ".join(f"'{name}'" for name in boards[:_MOST] or ("RTX 4090",))
        said = f"'{text}' names {len(boards)} cards" if len(boards) > 1 else message
        return RequestError(said, hint=f"Write the model too, for example {few}.")
    name = next((name for count, name in counts_in(text) if count <= MOST_CARDS), text)
    return RequestError(message, hint=did_you_mean_cards(near_cards(knowledge, name)))


def _of_series(knowledge: Knowledge, text: str) -> Sequence[str]:
    """Name the cards of a series that is named alone, ``Arc``, those that people have first."""
    said = set(words_of(text[:_LONGEST])) - {name.casefold() for name in MAKERS} - _ANY_CARD
    if not said or any(map(str.isdigit, "".join(said))):
        return ()
    usual = card_names(knowledge).usual
    found = [g for g in knowledge.gpus.values() if said <= {*words_of(g.name)}]
    rank = {g.name: (bool(g.not_for_sale), g.name not in usual, g.released or "") for g in found}
    newest = sorted(rank, key=lambda name: rank[name][2], reverse=True)
    return sorted(newest, key=lambda name: rank[name][:2])


_ANY_CARD = frozenset({"gpu", "gpus", "graphics", "card", "cards"})


def did_you_mean_cards(names: Iterable[str]) -> str:
    """Write the hint of nearest names."""
    quoted = [f"'{name}'" for name in names]
    if not quoted:
        return _OTHERWISE
    head = ", ".join(quoted[:-1])
    return f"Did you mean {f'{head} or {quoted[-1]}' if head else quoted[-1]}?"


class _Spelled(Struct, frozen=True):
    """One spelling of a card."""

    name: str
    words: frozenset[str]
    core: frozenset[str]
    order: tuple[int, int]
    """Of the boards of one model the usual one is meant."""
    rank: tuple[float, ...]
    """Of equally near models the lowest is meant: for people, the newest."""
    rare: float
    """What is added where few people can have it."""


def near_cards(knowledge: Knowledge, text: str) -> list[str]:
    """Name the cards that are nearest, one of each model, those that a person would mean first."""
    words = less_noise(knowledge, words_of(with_zeros(text[:_LONGEST])))
    said = [word for word in words if not is_size_word(word)]
    makers = makers_named(text)
    best: dict[frozenset[str], tuple[float, tuple[int, int], tuple[float, ...], str]] = {}
    for one, apart in _all_apart(knowledge, said):
        if makers and knowledge.gpus[one.name].vendor not in makers:
            continue
        no_such_board = any(is_board_word(w) and gpu_core(w) for w in {*said} - one.words)
        model = frozenset(w for w in one.core if no_such_board or not is_board_word(w))
        near = (round(apart, 1), one.order, one.rank, one.name)
        best[model] = min(best.get(model, near), near)
    ordered = sorted((apart, rank, name) for apart, _, rank, name in best.values())
    near_by = (name for apart, _, name in ordered if apart <= ordered[0][0] + _AS_NEAR)
    return [*islice(dict.fromkeys(near_by), _MOST)]


_AS_NEAR, _TOO_FAR = 0.35, 2.2
_UNSAID = 0.4
"""For a word of the card that is not in the text: TI, SUPER, MOBILE."""
_SURPLUS, _SURPLUS_NUMBER, _BOARD, _RARE = 0.5, 1.5, 0.02, 0.4


def _all_apart(knowledge: Knowledge, said: Sequence[str]) -> Iterator[tuple[_Spelled, float]]:
    """Give the spellings that share a word with the text, or nearly, and how far each is."""
    by_word = _by_word(knowledge)
    near = {word: _near_words(word, by_word) for word in (*said, *_joined(said))}
    kept = {one for words in near.values() for word in words for one in by_word[word]}
    for one in kept:
        apart = min(_apart(each, one, near) for each in {tuple(said), tuple(_joined(said))})
        if apart <= _TOO_FAR:
            yield one, apart


@by_identity  # 1.13 of questions
def _by_word(knowledge: Knowledge) -> Mapping[str, Sequence[_Spelled]]:
    """Key every spelling by the words that tell it from others."""
    usual = card_names(knowledge).usual
    found: dict[str, list[_Spelled]] = {}
    for name, words, core in spellings_of(knowledge):
        gpu = knowledge.gpus[name]
        telling = frozenset(w for w in core.split() if not is_size_word(w))
        order = (usual.index(name) if name in usual else len(usual), len(telling))
        newest = -int((gpu.released or "0")[:4])
        rank = (gpu.segment != "consumer", newest, order[0])
        rare = _RARE if gpu.not_for_sale else 0.0
        one = _Spelled(name, frozenset(words.split()), telling, order, rank, rare)
        for word in telling:
            found.setdefault(word, []).append(one)
    return found


def _near_words(word: str, known: Iterable[str]) -> Mapping[str, float]:
    """Give the words that one may stand for, each with how far it is."""
    pairs = ((other, _between(word, other)) for other in known)
    return {other: far for other, far in pairs if far is not None}


def _apart(said: Sequence[str], one: _Spelled, near: Mapping[str, Mapping[str, float]]) -> float:
    """Give how far a text is from a spelling: for each word that differs, is missing or surplus."""
    left, total, met = set(one.core), one.rare, False
    for word in sorted(said, key=lambda each: each not in one.words):
        fitting = {other: far for other, far in near[word].items() if other in left}
        if fitting:
            best = min(fitting, key=lambda other: (fitting[other], other))
            left.discard(best)
            total += fitting[best]
            met = True
        elif word not in one.words:
            total += _SURPLUS_NUMBER if any(map(str.isdigit, word)) else _SURPLUS
    unsaid = sum(_BOARD if is_board_word(word) else _UNSAID for word in left)
    return total + unsaid if met else _TOO_FAR + 1


def _joined(said: Sequence[str]) -> Sequence[str]:
    """Put letters and the number behind them together: ``MI 300``."""
    return _LETTERS_APART.sub(r"\1", " ".join(said)).split()


_LETTERS_APART = re.compile(r"\b([a-z]{1,2}) (?=\d)")
_NUMBERED = re.compile(r"([a-z]*)(\d+)([a-z]*)")
_LIKE, _ALIKE = 0.75, 0.4
_OTHER_LETTER, _NO_LETTER, _OTHER_MARK = 1.5, 0.9, 0.5
_ZERO, _LAST_DIGIT, _DIGIT_MORE, _DIGIT = 0.7, 0.9, 1.0, 1.3


def _is_alike(word: str, other: str) -> bool:
    if abs(len(word) - len(other)) > 1 or len(set(word) & set(other)) < len(word) - 2:
        return False
    swapped = sorted(word) == sorted(other)
    return swapped or SequenceMatcher(None, word, other).ratio() >= _LIKE


def _between(word: str, other: str) -> float | None:
    """Give how far two words are; None where one cannot be a slip of the other."""
    if word == other:
        return 0.0
    ours, theirs = _NUMBERED.fullmatch(word), _NUMBERED.fullmatch(other)
    if not (ours and theirs):
        return _ALIKE if not (ours or theirs) and _is_alike(word, other) else None
    digits = _of_digits(ours[2], theirs[2])
    if digits is None:
        return None
    letter = 0.0 if ours[1] == theirs[1] else _OTHER_LETTER if ours[1] and theirs[1] else _NO_LETTER
    return digits + letter + (_OTHER_MARK if ours[3] != theirs[3] else 0.0)


def _of_digits(typed: str, meant: str) -> float | None:
    """Give how far two numbers are as they are typed, not as they count; one slip at most."""
    if typed == meant:
        return 0.0
    if f"{typed}0" == meant or f"{meant}0" == typed:
        return _ZERO
    if len(typed) != len(meant):
        longer, shorter = sorted((typed, meant), key=len, reverse=True)
        less = {longer[:at] + longer[at + 1 :] for at in range(1, len(longer))}
        return _DIGIT_MORE if shorter in less else _DIGIT if longer[1:] == shorter else None
    wrong = [at for at, one in enumerate(typed) if one != meant[at]]
    if len(wrong) == 1:
        return _LAST_DIGIT if wrong[0] == len(typed) - 1 else _DIGIT
    swapped = wrong == [wrong[0], wrong[0] + 1] and typed[wrong[0]] == meant[wrong[1]]
    return _LAST_DIGIT if swapped and sorted(typed) == sorted(meant) else None
