"""A toy Atlas: 96 countries on a grid, with neighbours, towns, money, tongues and flat pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vispath_lit.kg.build import build
from vispath_lit.kg.store import KnowledgeGraph

WIDTH, HEIGHT, SIZE = 12, 8, 64
COLOURS = ("red", "white", "green", "blue", "yellow", "black")
SIDES = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
BEARINGS = {"north": 0.0, "east": 90.0, "south": 180.0, "west": 270.0}


class ToyAtlas:
    """Collects the rows of a graph folder."""

    def __init__(self) -> None:
        self.entities: dict[str, tuple[str, str]] = {}
        self.triples: list[tuple[str, str, str]] = []
        self.images: list[tuple[str, str, str]] = []

    def entity(self, type_: str, name: str) -> str:
        id_ = f"{type_}:{name}"
        self.entities.setdefault(id_, (f"{type_.title()} {name}", type_))
        return id_

    def add(self, subject: str, relation: str, object_: str) -> None:
        self.triples.append((subject, relation, object_))

    def picture(self, entity: str, kind: str, folder: Path) -> None:
        name = f"images/{kind}-{len(self.images)}.png"
        pixels = np.random.default_rng(len(self.images)).integers(0, 255, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((SIZE, SIZE)).save(folder / name)
        self.images.append((entity, name, kind))

    def write(self, folder: Path) -> None:
        relations = sorted({relation for _, relation, _ in self.triples})
        tables: dict[str, list[tuple[str, ...]]] = {
            "entities.tsv": [
                ("id", "label", "aliases", "type", "description"),
                *((i, label, f"{label} too", t, "") for i, (label, t) in self.entities.items()),
            ],
            "relations.tsv": [("id", "label"), *((r, r.replace("_", " ")) for r in relations)],
            "triples.tsv": [("subject", "relation", "object"), *self.triples],
            "images.tsv": [("entity", "path", "kind"), *self.images],
        }
        for name, rows in tables.items():
            (folder / name).write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def toy_country(toy: ToyAtlas, n: int, rng: np.random.Generator) -> str:
    """A country with facts of its own and facts it shares with others."""
    c = toy.entity("country", str(n))
    toy.add(c, "capital", toy.entity("city", f"{n}a"))
    toy.add(c, "largest_city", toy.entity("city", f"{n}b"))
    for town in "ab":
        toy.add(f"city:{n}{town}", "in_country", c)
        toy.add(f"city:{n}{town}", "timezone", toy.entity("timezone", str(n % 9)))
    for zone in range(9):
        toy.add(toy.entity("timezone", str(zone)), "utc_offset", toy.entity("utc_offset", str(zone)))
    toy.add(c, "currency", toy.entity("currency", str(n)))
    toy.add(f"currency:{n}", "issued_by", c)
    toy.add(c, "official_language", toy.entity("language", str(n // 2)))
    toy.add(f"language:{n // 2}", "script", toy.entity("script", str(n // 2 % 10)))
    toy.add(c, "anthem", toy.entity("anthem", str(n)))
    toy.add(f"anthem:{n}", "anthem_adopted", toy.entity("year", str(1800 + n % 60)))
    toy.add(f"anthem:{n}", "music_by", toy.entity("person", str(n)))
    toy.add(c, "highest_volcano", toy.entity("volcano", str(n)))
    toy.add(f"volcano:{n}", "rock_type", toy.entity("rock", str(n % 30)))
    for relation, type_, many in (
        ("demonym", "demonym", 96), ("calling_code", "calling_code", 96), ("national_day", "date", 96),
        ("internet_domain", "internet_domain", 96),
        ("legislature", "legislature", 80), ("main_export", "product", 40),
        ("head_of_state", "person", 96), ("continent", "continent", 5), ("main_religion", "religion", 30),
    ):  # fmt: skip
        toy.add(c, relation, toy.entity(type_, f"{relation}{int(rng.integers(many))}"))
    return c


@pytest.fixture(scope="session")
def toy_atlas(tmp_path_factory: pytest.TempPathFactory) -> tuple[KnowledgeGraph, Path]:
    """The opened store and the path of its cues."""
    folder = tmp_path_factory.mktemp("atlas")
    (folder / "images").mkdir()
    toy, rng = ToyAtlas(), np.random.default_rng(0)
    countries = [toy_country(toy, n, rng) for n in range(WIDTH * HEIGHT)]
    palettes = [tuple(COLOURS[i : i + 2]) for i in range(5)]
    cues: dict[str, dict[str, object]] = {}
    for n, country in enumerate(countries):
        neighbours = []
        for side, (dx, dy) in SIDES.items():
            x, y = n % WIDTH + dx, n // WIDTH + dy
            if 0 <= x < WIDTH and 0 <= y < HEIGHT:
                toy.add(country, f"borders_{side}", countries[y * WIDTH + x])
                neighbours.append({
                    "id": countries[y * WIDTH + x], "sector": side, "bearing": BEARINGS[side],
                    "edge_distance": 22.5, "anchor": [32.0, 32.0], "shared": True,
                })  # fmt: skip
        palette = palettes[(n % WIDTH + 2 * (n // WIDTH)) % len(palettes)]
        cues[country] = {
            "outline": [[[0, 0], [9, 9]]], "neighbours": neighbours,
            "palette": [{"name": name, "rgb": [0, 0, 0], "share": 0.5} for name in palette],
        }  # fmt: skip
        toy.picture(country, "flag", folder)
        toy.picture(country, "outline", folder)
        toy.picture(f"city:{n}a", "city_locator", folder)
        toy.picture(f"city:{n}b", "city_locator", folder)
    toy.write(folder)
    (folder / "cues.json").write_text(json.dumps({"size": SIZE, "countries": cues}), encoding="utf-8")
    store = folder / "store"
    build(folder, store)
    return KnowledgeGraph.open(store), folder / "cues.json"
