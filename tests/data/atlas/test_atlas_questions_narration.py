"""Questions of train_wide whose steps are told forwards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from vispath_lit.data.atlas.questions import clauses, narration, wording
from vispath_lit.data.atlas.questions.forms import FIVE, KEPT, SLOT, phrases
from vispath_lit.data.atlas.questions.narration import Narrator
from vispath_lit.data.atlas.questions.references import Reached, references
from vispath_lit.data.atlas.questions.steps import BORDERS, is_border, key, step_forms
from vispath_lit.data.atlas.questions.wording import Writer
from vispath_lit.data.atlas.relations import RELATIONS, SECTORS

MIDDLE = (
    *("anthem", "area_like", "borders", "capital", "cue_arrow", "cue_strip", "currency", "discovered_in"),
    *("element_deposit", "in_country", "in_district", "in_subdivision", "issued_by", "largest_city"),
    *("longest_border_with", "longest_river", "main_export_partner", "main_import_partner", "named_after"),
    *("next_element", "official_language", "principal_country", "river_mouth", "river_source", "script"),
    *("script_language", "serves_city", "shortest_border_with", "spoken_language", "territory_of"),
    *("timezone", "volcanic_region"),
)
"""What the middle hops of training questions are, and the two cues."""

STEPS, ALL = step_forms(), phrases(wide=True)
KNOWN = {r.id: r for r in RELATIONS}
SLOTS = {"{x}", "{n}", "{t}", "{beside}", "{d}", "{dn}", "{side}"}
PATHS = (
    ("flag", ["main_export_partner", "longest_border_with", "capital"], ["country"] * 3 + ["city"]),
    ("outline", ["borders_south", "borders_southwest", "borders_west"], ["country"] * 4),
    (
        "city_locator",
        ["in_country", "cue_arrow", "anthem", "lyrics_by"],
        ["city", "country", "country", "anthem", "person"],
    ),
    (
        "element_cell",
        ["next_element", "discovered_in", "currency"],
        ["element"] * 2 + ["country", "currency"],
    ),
    (
        "county_locator",
        ["borders_north", "in_subdivision", "borders_east", "largest_city"],
        ["county", "county", "us_state", "us_state", "city"],
    ),
)


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


def told(count: int = 400) -> list[str]:
    narrator = Narrator(np.random.default_rng(0))
    return [narrator.question(*PATHS[serial % len(PATHS)]) for serial in range(count)]


def test_every_relation_in_the_middle_of_a_path_has_told_steps() -> None:
    assert set(STEPS.told) == set(STEPS.seek) == set(STEPS.called) == set(MIDDLE)
    assert set(STEPS.close) <= {key(relation) for relation in ALL.ask}
    assert set(STEPS.frame["names"]) == set(ALL.show)


@pytest.mark.parametrize("relation", MIDDLE)
def test_told_steps_have_their_slots(relation: str) -> None:
    forms, seeks, called = STEPS.told[relation], STEPS.seek[relation], STEPS.called[relation]
    assert len(set(forms)) == len(forms) >= (5 if relation.startswith("cue_") else 8)
    assert len(set(seeks)) == len(seeks) >= 4
    assert 2 <= len(set(called)) == len(called) <= 5
    assert all(form.count(SLOT) == form.count("{n}") == 1 for form in forms)
    assert all(seek.count(SLOT) == 1 and "{n}" not in seek for seek in seeks)
    for form in (*forms, *seeks, *called):
        assert set(re.findall(r"\{\w*\}", form)) <= SLOTS, form
        assert relation == BORDERS or not set(re.findall(r"\{\w*\}", form)) & {"{beside}", "{d}", "{dn}"}
        assert form[-1] not in ".?!", form
    assert sum(form.startswith(f"{SLOT} ") for form in forms) >= 2


@pytest.mark.parametrize("relation", sorted(STEPS.close))
def test_last_questions_are_questions(relation: str) -> None:
    for form in STEPS.close[relation]:
        assert form.endswith("?")
        assert form.count(SLOT) == 1 or words(form) & {"there", "it", "its", "that", "whose"}, form


def test_no_told_step_repeats_a_form_that_is_kept_for_the_test_splits() -> None:
    for relation in {*STEPS.told, *STEPS.close} & {*ALL.of, *ALL.ask}:
        kept = [*ALL.of.get(relation, ())[KEPT:FIVE], *ALL.ask.get(relation, ())[KEPT:FIVE]]
        mine = [forms.get(relation, ()) for forms in (STEPS.told, STEPS.seek, STEPS.close)]
        assert not too_like((form for forms in mine for form in forms), kept)
    for sector in SECTORS:
        borders = [ALL.of[f"borders_{sector}"][KEPT:FIVE], ALL.ask[f"borders_{sector}"][KEPT:FIVE]]
        assert not too_like(STEPS.told[BORDERS], [form for forms in borders for form in forms])
    for kind, names in STEPS.frame["names"].items():
        assert not too_like(names, ALL.show[kind][KEPT:FIVE])
    assert too_like(["the land that {x} buys from"], ["the land that {x} buys most from"])


def too_like(mine: Iterable[str], kept: Sequence[str]) -> list[str]:
    """The forms that share three in four of their words with one that is kept."""
    return [
        form
        for form in mine
        if any(len(words(form) & words(o)) >= 0.75 * len(words(form) | words(o)) for o in kept)
    ]


def test_narrated_questions_never_use_the_forms_kept_for_the_test_splits() -> None:
    kept = [*ALL.of["capital"][KEPT:FIVE], *ALL.ask["timezone"][KEPT:FIVE]]
    kept += [*ALL.show["flag"][KEPT:FIVE], *ALL.tell["flag"][KEPT:FIVE]]
    pieces = [piece.strip() for form in kept for piece in form.split(SLOT) if len(piece.split()) > 2]
    narrator = Narrator(np.random.default_rng(0))
    for _ in range(500):
        text = narrator.question("flag", ["capital", "timezone"], ["country", "city", "timezone"]).lower()
        assert not [piece for piece in pieces if piece.lower() in text], text


def test_narrated_questions_are_whole_sentences() -> None:
    for text in told():
        assert text[0].isupper() or text[0] in "1("
        assert text[-1] in ".?"
        assert not re.search(r"\{|\}|  |(?<!\.)\.\.(?!\.)|\?\.|[.?] [a-z]", text), text
        assert not re.search(r"\b(that that|(this|the) (that|this|the)|a [aeio]\w+)\b", text), text


def test_a_reference_that_could_mean_the_entity_before_is_not_open() -> None:
    refer = STEPS.frame["refer"]
    unclear = Reached("country", "country", nth=3, roles=("buyer",), clear=False)
    forms = {form for group in references(unclear, refer) for form in group}
    assert "that buyer" in forms
    assert "the third country" in forms
    assert not forms & {
        "that country",
        "this country",
        "the latter",
        "the other country",
        "the one just found",
    }
    assert references(Reached("city", "city", phrase="the dotted town"), refer) == [["the dotted town"]]
    assert {f for g in references(Reached("city", "city", letter="B"), refer) for f in g} == {"B", "city B"}


def test_it_is_open_only_where_the_other_entity_of_the_sentence_has_no_such_relation() -> None:
    here = Reached("us_state", "state", it=True, rival="county")
    assert here.is_it("capital")
    assert not here.is_it("borders_west")
    assert Reached("country", "country", it=True).is_it("cue_arrow")
    assert not Reached("country", "country", it=True, rival="country").is_it("cue_arrow")


def test_what_a_told_step_names_first_has_a_role_where_its_noun_could_mean_either() -> None:
    for relation, forms in STEPS.told.items():
        ends = KNOWN.get(f"{relation}_east" if relation == BORDERS else relation)
        same = ends is None or set(ends.domain) & set(ends.range)
        if same and any(form.index("{n}") < form.index(SLOT) for form in forms):
            assert len(STEPS.called[relation]) > 1, relation


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms that say only which relation they are of."""
    marks = replace(
        STEPS,
        told={r: (f"{SLOT} told:{r} {{n}}",) for r in MIDDLE},
        seek={r: (f"sought:{r} {SLOT}",) for r in MIDDLE},
        called={r: (f"role:{r}",) for r in MIDDLE},
        close={},
    )
    forms = replace(
        ALL,
        of={r: (f"the of:{r} {SLOT}",) * 6 for r in ALL.of},
        ask={r: (f"ask:{r} {SLOT}?",) * 6 for r in ALL.ask},
    )
    for module in (narration, clauses):
        monkeypatch.setattr(module, "step_forms", lambda: marks)
        monkeypatch.setattr(module, "phrases", lambda *, wide: forms)


@pytest.mark.usefixtures("marked")
def test_steps_are_told_in_the_order_of_the_path_and_references_follow_what_they_mean() -> None:
    narrator = Narrator(np.random.default_rng(0))
    for kind, relations, types in PATHS * 60:
        if any(is_border(relation) for relation in relations):
            continue
        text = narrator.question(kind, relations, types)
        told = re.findall(r"(?:told|sought|of):(\w+)", text)
        assert told == relations[:-1], text
        assert len(re.findall(r"(?i)ask:", text)) == 1
        asked = text.lower().index("ask:")
        assert asked > text.index(f":{told[-1]}") or re.match(r"Ask:\w+ (\w+ )?[A-Z]\?", text), text
        for role in set(re.findall(r"role:(\w+)", text)):
            assert text.index(f"role:{role}") > re.search(rf"(told|sought|of):{role}", text).start(), text  # type: ignore[union-attr]


def test_letters_come_in_order() -> None:
    nouns = "country|nation|land|city|town|state|county|element|anthem|currency|person"
    seen = 0
    for text in told():
        named = re.findall(rf"\b(?:{nouns}|let|it|for|by) \"?([A-DP-SX-Z])\b", text, re.ASCII)
        if named and named[0] == max(named):  # Where the question comes first, so does the last letter.
            named = named[1:]
        met = list(dict.fromkeys(named))
        seen += bool(met)
        assert met == sorted(met), text
    assert seen > 20


def test_several_borders_in_a_row_may_share_a_clause_and_end_where_one_has_arrived() -> None:
    narrator = Narrator(np.random.default_rng(0))
    texts = [narrator.question(*PATHS[1]) for _ in range(300)]
    moves = [
        text
        for text in texts
        if re.search(r"(two|three) (steps|borders) ?(over the map, starting at [^:]*)?:", text)
    ]
    assert 15 < len(moves) < 200
    ends = [end.replace("{t}", noun) for end in ALL.ends for noun in ("country", "nation", "land")]
    assert 60 < sum(any(text.endswith(end) for end in ends) for text in texts) < 270


def test_three_in_ten_questions_in_forms_of_train_wide_are_narrated_and_none_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Narrator, "question", lambda *_: "Narrated.")
    kind, relations, types = PATHS[0]

    def count(*, held_out: bool, wide: bool) -> int:
        writer = Writer(np.random.default_rng(0), held_out=held_out, wide=wide)
        return sum("Narrated." in writer.question(kind, relations, types).text for _ in range(1000))

    assert abs(count(held_out=False, wide=True) - 1000 * wording.NARRATED) < 50
    assert count(held_out=False, wide=False) == count(held_out=True, wide=False) == 0
