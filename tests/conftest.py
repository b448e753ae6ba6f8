"""A small graph about countries and cities that any test may use."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from vispath_lit.kg.build import build
from vispath_lit.kg.store import KnowledgeGraph

pytest_plugins = ("search_fixtures", "atlas_fixtures")  # found by `pythonpath` in pyproject.toml

ENTITIES = """\
id\tlabel\taliases\ttype\tdescription
fr\tFrance\tFrench Republic|République française\tcountry\tA country in western Europe.
de\tGermany\tDeutschland\tcountry\tA country in central Europe.
ch\tSwitzerland\tSuisse|Schweiz\tcountry\t
mc\tMonaco\t\tcountry\tA city state.
par\tParis\tCity of Light\tcity\tThe capital of France.
ber\tBerlin\t\tcity\t
zur\tZürich\tZurich (city)\tcity\t
rhi\tRhine\tRhein|Rhin\triver\t
eur\teuro\tEUR\tcurrency\t
eu\tEurope\t\tcontinent\t
pt\tParis\tParis, Texas\tcity\tA city in Texas that shares its name.
lone\tAtlantis\t\tisland\tConnected to nothing.
"""
RELATIONS = """\
id\tlabel\tinverse_label
capital\tcapital\tcapital of
borders\tborders\t
located_in\tlocated in\t
currency\tcurrency\t
flows_through\tflows through\tcrossed by
largest_city\tlargest city\t
part_of\tpart of\t
"""
# Hubs: eu, eur. Parallel edges: fr-par, mc-mc (a self loop). `borders` holds both ways round.
TRIPLES = """\
subject\trelation\tobject
fr\tcapital\tpar
fr\tlargest_city\tpar
de\tcapital\tber
de\tlargest_city\tber
ch\tlargest_city\tzur
mc\tcapital\tmc
mc\tlargest_city\tmc
fr\tborders\tde
de\tborders\tfr
fr\tborders\tch
ch\tborders\tfr
de\tborders\tch
ch\tborders\tde
fr\tborders\tmc
mc\tborders\tfr
fr\tcurrency\teur
de\tcurrency\teur
mc\tcurrency\teur
fr\tlocated_in\teu
de\tlocated_in\teu
ch\tlocated_in\teu
mc\tlocated_in\teu
par\tlocated_in\tfr
ber\tlocated_in\tde
zur\tlocated_in\tch
par\tpart_of\tfr
rhi\tflows_through\tde
rhi\tflows_through\tfr
rhi\tflows_through\tch
rhi\tlocated_in\teu
fr\tcapital\tpar
"""
IMAGES = """\
entity\tpath\tkind
fr\timages/fr.png\tflag
de\timages/de.png\tflag
fr\timages/outline.jpg\toutline
"""
MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
STRIPES = {"fr": ("blue", "white", "red"), "de": ("black", "red", "gold")}


@pytest.fixture
def toy_folder(tmp_path: Path) -> Path:
    """12 entities, 7 relations, 30 distinct triples (one written twice), 3 pictures."""
    folder = tmp_path / "toy"
    (folder / "images").mkdir(parents=True)
    tables = {"entities": ENTITIES, "relations": RELATIONS, "triples": TRIPLES, "images": IMAGES}
    for name, text in tables.items():
        (folder / f"{name}.tsv").write_text(text, encoding="utf8")
    for name, colours in STRIPES.items():
        flag = Image.new("RGB", (60, 40))
        draw = ImageDraw.Draw(flag)
        for i, colour in enumerate(colours):
            draw.rectangle((20 * i, 0, 20 * i + 19, 39), fill=colour)
        flag.save(folder / "images" / f"{name}.png")
    outline = Image.new("RGB", (64, 64), "white")
    ImageDraw.Draw(outline).polygon([(32, 4), (60, 24), (48, 60), (14, 58), (4, 22)], outline="black")
    outline.save(folder / "images" / "outline.jpg")
    return folder


@pytest.fixture
def toy_graph(toy_folder: Path) -> KnowledgeGraph:
    """The store of `toy_folder`, opened."""
    build(toy_folder, toy_folder.parent / "toy-store")
    return KnowledgeGraph.open(toy_folder.parent / "toy-store")


@pytest.fixture(scope="session")
def make_graph(tmp_path_factory: pytest.TempPathFactory) -> MakeGraph:
    """Builds a graph of n entities and r relations from (head, relation, tail) indices.

    Ids are e0, e1, ... and r0, r1, ...; labels "entity 0" and "relation 0".
    """
    root = tmp_path_factory.mktemp("graphs")
    counter = itertools.count()

    def make(entities: int, relations: int, triples: Iterable[tuple[int, int, int]]) -> KnowledgeGraph:
        folder = root / str(next(counter))
        folder.mkdir()
        for name, letter, count in (("entities", "e", entities), ("relations", "r", relations)):
            word = "entity" if letter == "e" else "relation"
            lines = [f"{letter}{i}\t{word} {i}\n" for i in range(count)]
            (folder / f"{name}.tsv").write_text("id\tlabel\n" + "".join(lines), encoding="utf8")
        lines = [f"e{h}\tr{r}\te{t}\n" for h, r, t in triples]
        (folder / "triples.tsv").write_text("subject\trelation\tobject\n" + "".join(lines), encoding="utf8")
        build(folder, folder / "store")
        return KnowledgeGraph.open(folder / "store")

    return make
