from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vispath_lit.data.bench.leaks import tells
from vispath_lit.data.bench.phrases import Phrases, Wording, clause, read_phrases, spelt
from vispath_lit.errors import DataError
from vispath_lit.kg.build import build
from vispath_lit.kg.store import KnowledgeGraph


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("capital", "the capital of {x}"),
        ("place of birth", "the place of birth of {x}"),
        ("the head of state", "the head of state of {x}"),
        ("discovered by", "the {t} that {x} is discovered by"),
        ("part of", "the {t} that {x} is part of"),
        ("orbits", "the {t} that {x} orbits"),
        ("flows through", "the {t} that {x} flows through"),
        ("has part", "the part of {x}"),
        ("located in the region", "the region that {x} is located in"),
        ("is owned by", "the {t} that {x} is owned by"),
        ("/people/person/place_of_birth", "the place of birth of {x}"),
        ("film.film.directed_by", "the {t} that {x} is directed by"),
        ("dateOfBirth", "the date of birth of {x}"),
        ("ISBN", "the ISBN of {x}"),
        ("{x} of", "the {t} that {x} is (x) of"),
        ("  ", "the value of {x}"),
    ],
)
def test_a_label_becomes_a_clause(label: str, expected: str) -> None:
    assert clause(label) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("us_state", "us state"),
        ("No. 5", "No. 5"),
        ("U.S.", "U.S."),
        ("a/b/", "b"),
        ("", ""),
        ("日本", "日本"),
    ],
)
def test_identifiers_are_spelt(name: str, expected: str) -> None:
    assert spelt(name) == expected


def test_clauses_nest_around_the_picture(toy_graph: KnowledgeGraph) -> None:
    wording = Wording(toy_graph, Phrases(start=("the {t} in the picture",)), np.random.default_rng(0))
    relations = [toy_graph.relation_index(name) for name in ("flows_through", "capital")]
    text = wording.question(relations, ["river", "country", "city"])
    assert text == "What is the capital of the country that the river in the picture flows through?"
    assert (
        wording.question(relations[1:], ["", "city"]) == "What is the capital of the entity in the picture?"
    )


def phrase_file(folder: Path, text: str) -> Path:
    path = folder / "phrases.toml"
    path.write_text(text, encoding="utf8")
    return path


def test_phrases_written_by_hand_replace_labels(toy_graph: KnowledgeGraph, tmp_path: Path) -> None:
    path = phrase_file(
        tmp_path,
        '\ufeffstart = ["the {t} shown"]\n[nouns]\ncountry = "land"\n[relations.capital]\n'
        'ask = ["Which {t} governs {x}?"]\n[relations.flows_through]\nof = ["the {t} watered by {x}"]\n'
        "[relations.currency]\nskip = true\n",
    )
    phrases = read_phrases(path, toy_graph)
    assert phrases.skip == {"currency"}
    wording = Wording(toy_graph, phrases, np.random.default_rng(0))
    relations = [toy_graph.relation_index(name) for name in ("flows_through", "capital")]
    text = wording.question(relations, ["river", "country", "city"])
    assert text == "Which city governs the land watered by the river shown?"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("start = [", "cannot be read as TOML"),
        ("begin = 1", "'begin'"),
        ('[relations.capitol]\nof = ["{x}"]', "relations.capitol"),
        ('[relations.capital]\nof = ["the capital"]', "hold {x} once"),
        ('[relations.capital]\nof = ["{x} {x}"]', "hold {x} once"),
        ("[relations.capital]\nof = []", "hold {x} once"),
        ('[relations.capital]\nof = "{x}"', "hold {x} once"),
        ("[relations.capital]\nskip = 3", "true or false"),
        ('[relations.capital]\nasks = ["{x}"]', "'asks'"),
        ("relations = 3", "expected a table"),
        ("[relations]\ncapital = 3", "expected a table"),
        ('start = ["it"]', "hold {t} once"),
        ("[nouns]\ncountry = 3", "nouns.country"),
    ],
)
def test_a_bad_phrase_file_is_refused(
    toy_graph: KnowledgeGraph, tmp_path: Path, text: str, found: str
) -> None:
    path = phrase_file(tmp_path, text)
    with pytest.raises(DataError) as error:
        read_phrases(path, toy_graph)
    assert found in str(error.value)
    assert str(path) in str(error.value)


def test_a_missing_phrase_file_is_named(toy_graph: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.toml"):
        read_phrases(tmp_path / "none.toml", toy_graph)


def test_names_are_seen_in_a_text(toy_folder: Path) -> None:
    with (toy_folder / "entities.tsv").open("a", encoding="utf8") as file:
        file.write("jp\t日本\t\t\t\nx\tX\t\t\t\n")
    build(toy_folder, toy_folder.parent / "store")
    graph = KnowledgeGraph.open(toy_folder.parent / "store")
    cases = [
        ("the capital of FRANCE?", "fr", True),
        ("the french republic", "fr", True),
        ("a Francesca", "fr", False),
        ("日本の首都", "jp", True),
        ("an X ray", "x", False),
    ]
    for text, id, expected in cases:
        assert tells(graph, text, graph.entity_index(id)) is expected, text
