"""What a question's words say of its image: the expression that refers to it, and that one's head noun."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vispath_lit.models.analyzers.vocabulary import EXPRESSION, MARKED, PICTURE, SHOWING, STOP, words

IN_PICTURE = rf"(?:in|on|by|from|at) (?:the|this|our|your) (?:[\w'’-]+ ){{0,2}}?(?:{PICTURE})s?"
POINTED = (
    rf"(?:(?:that |which |who )?(?:(?:is|are|was|were|you|we|can|see) )*(?:{MARKED}|here|above|below|see)"
    rf"(?: (?:to us|here|{IN_PICTURE}|in (?:colour|color|outline)))?|{IN_PICTURE}|"
    rf"(?:that |which )?the (?:[\w'’-]+ ){{0,2}}?(?:{PICTURE}) (?:marks|shows|depicts|displays|points to))"
)
HERE = r"(?:this|these) [\w-]+(?: [\w-]+ (?:to|for|of|from|on|in)\b)?"
WORDS = r"(?:[\w-]+ ){0,3}?[\w-]+"
REFERENCES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\bthe (?P<noun>{WORDS}),? (?:(?:that|which|who|whose) (?:(?!the\b)[\w-]+ ){{0,4}}?)?{HERE}",
        rf"\bthe (?P<noun>{WORDS}),? whose (?:[\w-]+ ){{1,5}}?{POINTED}\b",
        rf"\bthe (?P<noun>{WORDS}) (?:that |which )?(?:[\w-]+ed|[\w-]+ing|has|bears|carries|[\w-]+ itself) "
        rf"(?:by |with )?the (?:[\w-]+ ){{1,3}}?{POINTED}\b",
        rf"\b(?:the|this|that|these|those) (?P<noun>{WORDS}),? {POINTED}\b",
        rf"\bthe (?:{MARKED}) (?P<noun>[\w-]+)\b",
        r"\b(?:this|these) (?P<noun>(?:[\w-]+ ){0,2}?[\w-]+)\b",
    )
)
BREAK = re.compile(
    r"\b(?:of|in|on|at|to|by|from|for|with|where|which|that|who|whose|what|is|are|was|were|does|did|do|the|this|"
    r"a|an|and|has|have)\b"
)
INDEFINITE = re.compile(
    r"\b(?:a|an|one) (?:certain )?((?:[\w-]+ ){0,2}?[\w-]+)(?= (?!\w+ (?:a|an)\b)\w+|[.,;:]|$)"
)
ANAPHOR = re.compile(r"\bthat (?!that\b)([\w-]+)\b")
ASKING = re.compile(
    r"^(?:take|consider|think|name|tell|give|find|say|look|identify|imagine|start|begin)\b|\?$"
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


def find_reference(question: str) -> Reference:
    """What refers to the image: a sentence of its own that describes it, else a noun phrase.

    "The map marks a city. Which river ... that city?" and "Which river ... the city marked on the map?".
    """
    text = " ".join(question.split())
    sentences = re.split(r"(?<=[.!?:]) +", text)
    first = sentences[0].lower()
    if len(sentences) > 1 and not ASKING.search(first) and re.search(rf"\b(?:{SHOWING})\b", first):
        rest = " ".join(sentences[1:]).lower()
        return Reference(sentences[0], _introduced(first, rest), _anaphor_to_expression(first, rest))
    return _find_phrase(text)


def _find_phrase(text: str) -> Reference:
    """The first kind of pointing noun phrase that the text holds; of one kind the innermost."""
    low = text.lower()
    for pattern in REFERENCES:
        found = None
        for begin in re.finditer(r"\b(?:the|this|that|these|those)\b", low):
            match = pattern.match(low, begin.start())
            if match is not None and not BREAK.search(match["noun"]):
                found = match
        if found is not None:
            rest = f"{low[: found.start()]}{EXPRESSION}{low[found.end() :]}"
            return Reference(text[found.start() : found.end()], found["noun"].split()[-1], rest)
    return Reference("", "", low)


def _introduced(sentence: str, rest: str) -> str:
    """The noun that a describing sentence introduces: what the rest calls "that N", else its last "a N"."""
    for match in ANAPHOR.finditer(rest):
        if match[1] in words(sentence):
            return match[1]
    nouns = INDEFINITE.findall(sentence)
    return str(nouns[-1]).split()[-1] if nouns else ""


def _anaphor_to_expression(sentence: str, rest: str) -> str:
    """The first "that N" after a describing sentence stands for the image; else "@" comes first."""
    for match in ANAPHOR.finditer(rest):
        before = words(rest[max(match.start() - 40, 0) : match.start()])
        refers = not before or before[-1] in STOP  # else "that" is a relative pronoun after its noun
        if match[1] not in STOP and (refers or match[1] in words(sentence)):
            return f"{rest[: match.start()]}{EXPRESSION}{rest[match.end() :]}"
    return f"{EXPRESSION}: {rest}"
