"""The clause structure of a question: how many noun phrases lie between the image and the answer."""

from __future__ import annotations

import re

from vispath_lit.models.analyzers.vocabulary import (
    AUXILIARIES,
    COMPASS,
    COMPLEMENTS,
    COPULAS,
    DETERMINERS,
    EXPRESSION,
    LINKS,
    OPENERS,
    PARTITIVES,
    PICTURE,
    PLACING,
    POSSESSIVES,
    PREPOSITIONS,
    QUESTION_WORDS,
    STOP,
    TRANSPARENT,
    words,
)


def count_hops(rest: str) -> int:
    """Relations between the image's entity and the answer, at least 1.

    Each noun phrase of the chain but the image's own is reached by one relation, and so is the answer where
    the question word stands for it alone ("which N ...", "where ...").
    """
    tokens = words(TRANSPARENT.sub("", rest))
    asking = question_word(tokens)
    phrases, linked = 0, False
    for i, token in enumerate(tokens):
        if token in POSSESSIVES:
            phrases += _owned(tokens, i)
        elif token == "of":
            phrases += _is_bare_noun(tokens, i)
        elif token == "the" and (noun := noun_after(tokens, i)):
            # What an adjunct links to belongs to the chain, whatever stands before it.
            adjunct = _is_of_picture(noun) or (not linked and _is_adjunct(tokens, i, noun, asking))
            phrases += not adjunct
            linked = adjunct and not _is_of_picture(noun)
    without_image = EXPRESSION not in tokens  # then the first noun phrase is the start itself
    return max(phrases - without_image + (not answer_is_named(tokens, asking)), 1)


def noun_after(tokens: list[str], i: int) -> list[str]:
    """The words of the noun phrase whose determiner is at `i`."""
    end = i + 1
    while end < len(tokens) and tokens[end] not in STOP - {"most"} | POSSESSIVES | {EXPRESSION}:
        end += 1
    return tokens[i + 1 : end]


def question_word(tokens: list[str]) -> int:
    """Position of the word that asks, the number of tokens where none does.

    It opens a clause, or follows a preposition that does; any other question word is a relative pronoun.
    """
    for i, token in enumerate(tokens):
        clause = i - 1 if i and tokens[i - 1] in PREPOSITIONS else i
        if token in QUESTION_WORDS and (clause == 0 or tokens[clause - 1] in OPENERS):
            return i
    return len(tokens)


def _owned(tokens: list[str], i: int) -> int:
    """Noun phrases at the possessive mark at `i`: what is owned, and the owner if nothing else counted it."""
    before = tokens[i - 1] if i else "."
    if before in QUESTION_WORDS or _is_of_picture([before]):
        return 0
    start = i - 1
    while start >= 0 and tokens[start] not in STOP and tokens[start] not in POSSESSIVES | {EXPRESSION}:
        start -= 1
    bare = start < i - 1 and (start < 0 or tokens[start] not in DETERMINERS | POSSESSIVES | {"of"})
    return 1 + bare


def _is_bare_noun(tokens: list[str], i: int) -> bool:
    """Whether the "of" at `i` leads to a bare noun: "sex of mother of ann", not "place of birth"."""
    before = tokens[i - 1] if i else "."
    following, after = [*tokens[i + 1 : i + 3], ".", "."][:2]
    return (
        following not in STOP | {EXPRESSION} | COMPLEMENTS
        and before not in PARTITIVES
        and after not in AUXILIARIES - POSSESSIVES
    )


def _is_of_picture(noun: list[str]) -> bool:
    """Whether a noun phrase names the picture or a mark in it, or a side of the compass."""
    if COMPASS.fullmatch(noun[-1]):
        return True
    return any(re.fullmatch(rf"(?:{PICTURE})s?", word) for word in (noun[0], noun[-1]))


def _is_adjunct(tokens: list[str], i: int, noun: list[str], asking: int) -> bool:
    """Whether the noun phrase at `i` is part of a preposition or a predicate, no entity of the chain."""
    before = tokens[i - 1] if i else "."
    after = [*tokens[i + 1 + len(noun) :], "."][0]
    if noun[0] in ("most", "least") and len(noun) < 3:
        return True
    if before in PLACING and after in ("of", "with", "between", "after", "before"):
        return True
    if before == "to" and after in (".", "?"):
        return True
    if before == "of" and i > 1 and tokens[i - 2] in ("part", "most"):
        return True
    between = tokens[asking + 1 : i]
    return bool(between) and after in LINKS and not (STOP - {"has", "have"}).intersection(between)


def answer_is_named(tokens: list[str], asking: int) -> bool:
    """Whether the question word stands beside the answer's own noun phrase ("what is the", "name the")."""
    if asking == len(tokens):
        return True
    rest = tokens[asking + 1 :]
    verb = next((i for i, token in enumerate(rest) if token in COPULAS), len(rest))
    after = rest[verb + 1 : verb + 2]
    if tokens[asking] == "when":
        return verb == 0 and rest[0] == "is" and after == ["the"]
    if tokens[asking] not in ("what", "who", "which") or STOP.intersection(rest[:verb]):
        return False
    owned = (
        verb == 0
        and bool(POSSESSIVES.intersection(rest[1:]))
        and "the" not in rest[: rest.index("?") if "?" in rest else None]
    )
    apart = asking > 0 and tokens[asking - 1] in PREPOSITIONS
    return (after == ["the"] or owned) and not apart


def sketch(rest: str) -> str:
    """The content words of the clauses from the image's entity outwards, joined by commas."""
    before, _, after = rest.partition(EXPRESSION)
    inner = [_content(clause) for clause in reversed(_clauses(before))]
    outer = [_content(clause) for clause in _clauses(after)]
    return ", ".join(part for part in [*inner, *outer] if part)


def _clauses(text: str) -> list[str]:
    """The text cut where a determiner, a possessive or a relative word opens a new noun phrase."""
    opening = (
        r"\b(?:the|a|an|its|their|his|her|this|that|these|those|where|which|who|whose|whom)\b|'s|’s|[.,:;?!]"
    )
    return [part for part in re.split(opening, text) if part.strip()]


def _content(clause: str) -> str:
    return " ".join(token for token in words(clause) if token not in STOP and token != EXPRESSION)
