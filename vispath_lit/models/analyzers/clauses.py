"""The clause structure of a question, from function words alone: what refers to the image, and how many
noun phrases lie between it and the answer.

No word here belongs to a data set's relations: only determiners, pronouns, question words and the words with
which English points at a picture.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

POINTING = (
    r"(?:shown|pictured|depicted|displayed|illustrated|photographed|portrayed|drawn|sketched|outlined|rendered|"
    r"presented|featured|visible|seen|appears?|appearing|here|above|below|see|looking at|look at)"
)
PICTURE = (
    r"(?:image|picture|photo|photograph|drawing|illustration|figure|map|sketch|diagram|graphic|snapshot|view|"
    r"rendering|screenshot|icon|artwork|painting|outline)"
)
DETERMINER = r"(?:the|this|that|these|those|a|an)"
IN_PICTURE = rf"(?:in|on|by|from|of|at) (?:the|this|that|our|your) (?:\w+ )?{PICTURE}"
WORD = re.compile(r"'s\b|’s\b|[\w\-]+(?:['’]\w+)?|[.,:;?!()]")
QUESTION_WORDS = frozenset({"what", "which", "who", "whom", "whose", "where", "when", "how"})
COPULAS = frozenset({"is", "are", "was", "were", "'s", "’s", "be"})
DETERMINERS = frozenset({"the", "a", "an", "this", "that", "these", "those", "its", "their", "his", "her"})
FUNCTION_WORDS = """
of in on at by to from for with into onto as and or do does did has have had can could would will shall may
it they he she you i we me us them one there here please tell name give say find if then than so such also
both each any some all being been am . , : ; ? ! ( )
"""
STOP = DETERMINERS | COPULAS | QUESTION_WORDS | frozenset(FUNCTION_WORDS.split())
EXPRESSION = "@"
POSSESSIVES = frozenset({"'s", "’s"})
PREPOSITIONS = frozenset(
    {"of", "in", "on", "at", "by", "to", "from", "for", "with", "into", "through", "near", "under"}
)
OPENERS = frozenset({",", ":", ";", ".", "?", "!", "and"})
# "name of X" is X; a "kind of X" is one noun phrase; "place of birth" is one notion.
TRANSPARENT = re.compile(r"\bthe (?:full |official )?names? of ")
PARTITIVES = frozenset(
    {"kind", "type", "sort", "number", "amount", "part", "piece", "body", "unit", "form", "group"}
)
COMPLEMENTS = frozenset(
    {"birth", "death", "origin", "residence", "state", "government", "education", "study", "work"}
)


@dataclass(frozen=True, slots=True)
class Reference:
    """The words that refer to the image.

    Attributes:
        expression: "the country whose flag is shown"; empty where nothing refers to an image.
        head: its bare noun, "country".
        rest: the question in lower case with the expression replaced by "@".
    """

    expression: str
    head: str
    rest: str


_NOUNS = r"(?:[\w\-]+ ){0,3}?[\w\-]+"
_POINTED = (
    rf"(?:(?:that |which )?(?:is |are |was |were |you |we |can |being )*{POINTING}(?: to us| to you)?"
    rf"(?: (?:{IN_PICTURE}))?|{IN_PICTURE})"
)
_WHOSE = rf"whose (?:[\w\-]+ ){{1,5}}?{_POINTED}"
REFERENCE = re.compile(
    rf"\b(?P<det>{DETERMINER}) (?P<noun>{_NOUNS}),? (?:{_WHOSE}|{_POINTED})\b", re.IGNORECASE
)
BARE = re.compile(r"\b(?:this|these) (?P<noun>(?:[\w\-]+ ){0,2}?[\w\-]+)\b", re.IGNORECASE)
BREAK = re.compile(
    r"\b(?:of|in|on|at|to|by|from|for|with|where|which|that|who|whose|what|is|are|was|were|does|did|do|"
    r"the|this|a|an|and)\b|[,.:;?!]",
    re.IGNORECASE,
)


def find_reference(question: str) -> Reference:
    """The shortest noun phrase that is said to be in the picture; "this N" where none is.

    Of several candidates the one with the fewest words before its cue wins, then the last.
    """
    text = " ".join(question.split())
    found = None
    for begin in re.finditer(rf"\b{DETERMINER} ", text, re.IGNORECASE):
        match = REFERENCE.match(text, begin.start())
        if match is not None and not BREAK.search(match["noun"]):
            found = match
    if found is None:
        for match in BARE.finditer(text):
            if not BREAK.search(match["noun"]):
                found = match
                break
    if found is None:
        return Reference("", "", text.lower())
    rest = f"{text[: found.start()]}{EXPRESSION}{text[found.end() :]}".lower()
    return Reference(found[0], found["noun"].split()[-1].lower(), rest)


def words(text: str) -> list[str]:
    """Lower-case words, possessive marks and stops of a text, "@" kept."""
    return re.findall(rf"{EXPRESSION}|{WORD.pattern}", text.lower())


def noun_phrases(rest: str) -> int:
    """Noun phrases that stand for an entity of the chain.

    These are "@", each noun with a determiner of its own, each one that another owns ("'s"), each bare owner,
    and each bare noun after "of" ("sex of mother of ann") unless the two are one notion ("place of birth").
    """
    tokens = words(TRANSPARENT.sub("", rest))
    return sum(_opens(tokens, i) for i in range(len(tokens)))


def _opens(tokens: list[str], i: int) -> int:
    """How many noun phrases the token at `i` opens."""
    token, before = tokens[i], tokens[i - 1] if i else "."
    following = tokens[i + 1] if i + 1 < len(tokens) else "."
    if token == EXPRESSION:
        return 1
    if token in POSSESSIVES:
        return int(before not in QUESTION_WORDS) * (1 + _bare_owner(tokens, i))
    if token == "of":
        return int(following not in STOP | {EXPRESSION} | COMPLEMENTS and before not in PARTITIVES)
    relative = token == "that" and before not in STOP
    return int(token in DETERMINERS and following not in STOP and not relative)


def _bare_owner(tokens: list[str], i: int) -> int:
    """1 where the owner before the possessive mark at `i` is a name that nothing else has counted."""
    start = i - 1
    while start >= 0 and tokens[start] not in STOP and tokens[start] not in POSSESSIVES | {EXPRESSION}:
        start -= 1
    if start == i - 1:
        return 0
    return int(start < 0 or tokens[start] not in DETERMINERS | POSSESSIVES | {"of"})


def answer_is_named(rest: str) -> bool:
    """Whether the question word stands beside the answer's own noun phrase ("what is the", "name the").

    Then the two are one entity; otherwise ("which N ...", "where ...") the question word is one more. Only a
    question word that opens a clause asks; any other one is a relative pronoun.
    """
    tokens = words(rest)
    for i, token in enumerate(tokens):
        clause = i - 1 if i and tokens[i - 1] in PREPOSITIONS else i
        if token in QUESTION_WORDS and (clause == 0 or tokens[clause - 1] in OPENERS):
            named = token in ("what", "who", "which") and tokens[i + 1 : i + 2] != []
            return named and tokens[i + 1] in COPULAS and tokens[i + 2 : i + 3] not in ([EXPRESSION], ["it"])
    return True


def count_hops(rest: str) -> int:
    """Relations between the image's entity and the answer: the noun phrases of the chain, less one."""
    return max(noun_phrases(rest) - answer_is_named(rest), 1)


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
