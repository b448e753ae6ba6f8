from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from vispath_lit.data.atlas.questions import wording
from vispath_lit.data.atlas.questions.forms import FIVE, KEPT, SLOT, phrases
from vispath_lit.data.atlas.questions.paraphrases import paraphrases
from vispath_lit.data.atlas.questions.plan import HELD_OUT_RELATIONS, HELD_OUT_SEQUENCES, Plan
from vispath_lit.data.atlas.questions.starts import share
from vispath_lit.data.atlas.questions.wording import Writer
from vispath_lit.data.atlas.relations import RELATIONS

PARTS = [
    (r.id, part, r.label) for r in RELATIONS for part in ("of", "ask") if r.id in getattr(phrases(), part)
]
ALL = phrases(wide=True)
SMALL_WORDS = {"of", "the", "in", "on", "to", "from", "with", "by", "has", "its", "is", "a", "about", "after"}

RUN = 9  # words in a row that no two writers choose alike


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


@pytest.mark.parametrize(("relation", "part", "label"), PARTS)
def test_five_forms_half_of_them_without_a_word_of_the_label(relation: str, part: str, label: str) -> None:
    forms = getattr(ALL, part)[relation]
    assert getattr(phrases(), part)[relation] == forms[: len(getattr(phrases(), part)[relation])]
    assert len(set(forms)) == len(forms) > FIVE
    assert all(form.count(SLOT) == 1 for form in forms)
    assert all(form.endswith(("?", ".")) for form in forms) or part == "of"
    content = words(label) - SMALL_WORDS
    assert sum(not words(form) & content for form in forms[:FIVE]) >= 2.5
    assert sum(not words(form) & content for form in forms) >= len(forms) / 2
    assert any(re.search(r"\{x\}\W*$", form) for form in forms[:KEPT])


def test_every_relation_that_may_end_a_question_can_be_asked_for() -> None:
    assert {r.id for r in RELATIONS if r.askable} == set(phrases().ask)


def test_every_relation_that_leads_on_has_a_noun_phrase() -> None:
    subjects = {type_ for r in RELATIONS if r.askable for type_ in r.domain}
    leads_on = {r.id for r in RELATIONS if r.askable and subjects & set(r.range)}
    assert leads_on - set(phrases().of) == set()


def test_every_entity_on_the_way_has_a_noun() -> None:
    on_the_way = {type_ for r in RELATIONS if r.id in phrases().of for type_ in r.range}
    assert on_the_way | {type_ for r in RELATIONS for type_ in r.domain} <= set(phrases().nouns)


@pytest.mark.parametrize("kind", sorted(phrases().show))
def test_pictures_have_five_forms_of_each_sort(kind: str) -> None:
    assert min(len(set(phrases().show[kind])), len(set(phrases().tell[kind]))) > FIVE
    assert all(sentence.endswith(".") for sentence in phrases().tell[kind])


def test_no_form_of_training_repeats_one_that_is_kept_for_the_test_splits() -> None:
    lists = [
        *ALL.of.values(),
        *ALL.ask.values(),
        *ALL.show.values(),
        *ALL.tell.values(),
    ]
    for forms in lists:
        for mine in forms[FIVE:]:
            shares = [
                len(words(mine) & words(kept)) / len(words(mine) | words(kept)) for kept in forms[KEPT:FIVE]
            ]
            assert max(shares) < 0.75, mine


@pytest.mark.parametrize("wide", [False, True])
def test_training_never_sees_the_forms_kept_for_the_test_splits(wide: bool) -> None:
    writer = Writer(np.random.default_rng(0), held_out=False, wide=wide)
    kept = [p for forms in (phrases().of["capital"], phrases().show["flag"]) for p in forms[KEPT:FIVE]]
    for _ in range(300):
        worded = writer.question(
            "flag", ["capital", "in_country", "currency"], ["country", "city", "country", "currency"]
        )
        assert not worded.new_form
        assert not any(
            part.strip() in worded.text for form in kept for part in form.split(SLOT) if len(part.split()) > 2
        )
    assert any(
        Writer(np.random.default_rng(s), held_out=True)
        .question("flag", ["capital"], ["country", "city"])
        .new_form
        for s in range(20)
    )


def test_a_question_is_whole_sentences() -> None:
    writer = Writer(np.random.default_rng(1), held_out=True)
    for relation in sorted(phrases().ask):
        text = writer.question("flag", ["borders_east", relation], ["country", "country", "city"]).text
        assert "{" not in text
        assert text[0].isupper()
        assert text[-1] in ".?"
        assert "  " not in text


@pytest.mark.parametrize("split", ["test", "val", "train"])
def test_paraphrases_are_for_known_relations_and_those_of_test_share_no_template(split: str) -> None:
    known = {r.id: r for r in RELATIONS}
    forms = [f for part in (ALL.of, ALL.ask, ALL.show, ALL.tell) for fs in part.values() for f in fs]
    pieces = {piece.strip(" ?.") for form in forms for piece in form.split(SLOT) if len(piece.split()) >= 5}
    texts = [text for found in paraphrases(split).values() for text in found]
    assert len(texts) == len(set(texts)) >= 150
    for (kind, relations), found in paraphrases(split).items():
        assert kind in phrases().show
        for before, after in pairwise(relations):
            assert set(known[before].range) & set(known[after].domain), relations
        assert known[relations[-1]].askable
        for text in found:
            assert text.endswith(("?", ".", "!"))
            assert split != "test" or not [piece for piece in pieces if piece in text], text


def test_paraphrases_of_training_are_for_paths_that_training_may_see_and_not_those_of_the_other_splits() -> (
    None
):
    for _, relations in paraphrases("train"):
        assert not set(relations) & set(HELD_OUT_RELATIONS)
        assert share(">".join(relations), Plan().seed) >= HELD_OUT_SEQUENCES

    def runs(split: str) -> set[tuple[str, ...]]:
        texts = [re.findall(r"[a-z]+", t.lower()) for found in paraphrases(split).values() for t in found]
        return {tuple(text[i : i + RUN]) for text in texts for i in range(len(text) - RUN + 1)}

    assert not runs("train") & (runs("test") | runs("val"))


def test_paraphrases_of_training_hold_no_piece_of_their_forms_that_are_kept_for_the_test_splits() -> None:
    forms = phrases()
    for (kind, relations), texts in paraphrases("train").items():
        lists = [forms.show[kind], forms.tell[kind]]
        lists += [
            part[relation] for part in (forms.of, forms.ask) for relation in relations if relation in part
        ]
        kept = [form.replace("{t}", SLOT) for found in lists for form in found[KEPT:FIVE]]
        pieces = {piece.strip(" .?,").lower() for form in kept for piece in form.split(SLOT)}
        for text in texts:
            assert not [p for p in pieces if len(p.split()) > 2 and p in text.lower()], text


def capitals(writer: Writer, count: int = 300) -> list[str]:
    types = ["country", "city", "timezone"]
    return [writer.question("flag", ["capital", "timezone"], types).text for _ in range(count)]


@pytest.mark.parametrize("held_out", [False, True])
def test_the_other_splits_know_nothing_of_the_forms_and_frames_of_train_wide(held_out: bool) -> None:
    texts = capitals(Writer(np.random.default_rng(0), held_out=held_out))
    pieces = [piece.strip() for form in (*ALL.later, *ALL.around) for piece in form.split(SLOT)]
    assert not any(piece in text for piece in pieces if len(piece.split()) > 2 for text in texts)
    assert not any("a certain city" in text for text in texts)


def test_train_wide_also_asks_first_and_tells_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wording, "NARRATED", 0.0)
    texts = capitals(Writer(np.random.default_rng(0), held_out=False, wide=True))
    first = [text for text in texts if "a certain city" in text]
    assert 10 < len(first) < 100
    tells = [form.split(SLOT)[0].strip() for form in ALL.later]
    assert all(any(tell in text for tell in tells) for text in first)
