"""The learned grounder on generated pictures: a grid with one marked cell, which pooled pixels confuse."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image as PILImage
from PIL import ImageDraw
from PIL.Image import Image
from torch import Tensor

from vispath_lit.data.views import ViewSettings, view
from vispath_lit.errors import ConfigError
from vispath_lit.kg.build import build
from vispath_lit.kg.images import load_image
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.grounders.contrast import ContrastSettings, contrastive_loss, train_grounder, whiten
from vispath_lit.models.grounders.fixed import FixedGrounder
from vispath_lit.models.grounders.learned import LearnedGrounder, LocalMetric
from vispath_lit.types import Analysis, Query

SHOWN = Analysis("the cell shown", "cell", "", (1.0,))
QUICK = ContrastSettings(epochs=3, batch=16, others=5)


class Pixels:
    """A picture's own pixels, shrunk: 4 x 4 as the whole, 16 x 16 and 8 x 8 as finer features."""

    def __init__(self, sides: tuple[int, ...] = (4,), fine: Pixels | None = None) -> None:
        self.sides = sides
        self.shapes = tuple((3, side) for side in sides)
        self.dim = sum(3 * side**2 for side in sides)
        self.fingerprint = f"pixels {sides}"
        if fine is not None:
            self.fine = fine

    def encode(self, images: Sequence[Image]) -> Tensor:
        levels = [
            torch.nn.functional.normalize(torch.from_numpy(self._shrunk(images, side)), dim=1)
            for side in self.sides
        ]
        rows: Tensor = torch.cat(levels, dim=1) / len(levels) ** 0.5
        return rows

    def _shrunk(self, images: Sequence[Image], side: int) -> NDArray[np.float32]:
        small = [image.resize((side, side), PILImage.Resampling.BOX) for image in images]
        values = np.stack([np.asarray(image, dtype=np.float32) for image in small])
        return np.moveaxis(values - 200, 3, 1).reshape(len(images), -1)


def marked(cell: int, side: int = 4) -> Image:
    picture = PILImage.new("RGB", (120, 120), "white")
    draw = ImageDraw.Draw(picture)
    for i in range(side * side):
        x, y = 20 + 20 * (i % side), 20 + 20 * (i // side)
        draw.rectangle((x, y, x + 19, y + 19), fill="red" if i == cell else "lightblue", outline="navy")
    return picture


def cells_graph(
    folder: Path, cells: int, damaged: int = 0, kinds: Sequence[str] = ("cell",)
) -> KnowledgeGraph:
    """One entity a cell with its picture; the last `damaged` pictures are none."""
    (folder / "images").mkdir(parents=True)
    for i in range(cells):
        marked(i).save(folder / "images" / f"{i}.png")
    tables = {
        "entities": "id\tlabel\n" + "".join(f"c{i}\tcell {i}\n" for i in range(max(cells, 2))),
        "relations": "id\tlabel\nnext\tnext\n",
        "triples": "subject\trelation\tobject\nc0\tnext\tc1\n",
        "images": "entity\tpath\tkind\n"
        + "".join(f"c{i}\timages/{i}.png\t{kinds[i % len(kinds)]}\n" for i in range(cells)),
    }
    for name, text in tables.items():
        (folder / f"{name}.tsv").write_text(text, encoding="utf8")
    build(folder, folder / "store")
    graph = KnowledgeGraph.open(folder / "store")
    for file in graph.image_files[cells - damaged :]:
        Path(file).write_bytes(b"not a picture")
    return graph


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return cells_graph(tmp_path_factory.mktemp("cells") / "graph", 16)


def made(graph: KnowledgeGraph, cache: Path | None = None, views: int = 32) -> LearnedGrounder:
    return LearnedGrounder(graph, Pixels(fine=Pixels((16, 8))), cache, views=views)


def unseen(graph: KnowledgeGraph) -> list[Query]:
    """A view of each picture that training never met."""
    pictures = [load_image(file) for file in graph.image_files]
    return [
        Query("q", view(picture, ViewSettings(), np.random.default_rng([100 + again, i])))
        for again in range(1)
        for i, picture in enumerate(pictures)
    ]


def strict(grounder: LearnedGrounder | FixedGrounder, graph: KnowledgeGraph) -> float:
    found = grounder.ground(unseen(graph), [SHOWN] * len(graph.image_files))
    right = graph.image_entity.tolist()
    return float(np.mean([c[0].entity == entity for c, entity in zip(found, right, strict=True)]))


def weights(grounder: LearnedGrounder) -> list[Tensor]:
    return [weight.detach().clone() for weight in grounder.parameters()]


def test_untrained_it_is_the_fixed_grounder(graph: KnowledgeGraph) -> None:
    fixed = FixedGrounder(graph, Pixels())
    assert sum(weight.numel() for weight in made(graph).parameters()) == 2 * (9 + 3) + 2 + 1
    assert not any(weight.requires_grad for weight in made(graph).parameters())
    queries = unseen(graph)
    analyses = [SHOWN] * len(queries)
    assert made(graph).ground(queries, analyses) == fixed.ground(queries, analyses)


def test_training_finds_what_the_fixed_grounder_confuses(graph: KnowledgeGraph, tmp_path: Path) -> None:
    grounder = made(graph, tmp_path)
    before = strict(grounder, graph)
    train_grounder(grounder, QUICK, seed=0)
    after = strict(grounder, graph)
    assert before < 0.8
    assert after > before + 0.15
    assert not any(weight.requires_grad for weight in grounder.parameters())


def test_the_same_seed_gives_the_same_weights_with_and_without_a_cache(
    graph: KnowledgeGraph, tmp_path: Path
) -> None:
    few = ContrastSettings(epochs=1, batch=8)
    one, cached, other = made(graph), made(graph, tmp_path), made(graph, tmp_path)
    for grounder, seed in ((one, 0), (cached, 0), (other, 1)):
        before = torch.random.get_rng_state()
        train_grounder(grounder, few, seed)
        assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(weights(one), weights(cached), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


def test_weights_are_loaded_and_serve_another_graph(graph: KnowledgeGraph, tmp_path: Path) -> None:
    grounder = made(graph)
    train_grounder(grounder, QUICK, seed=0)
    again = made(graph)
    again.load_state_dict(grounder.state_dict())
    queries = unseen(graph)
    analyses = [SHOWN] * len(queries)
    assert again.ground(queries, analyses) == grounder.ground(queries, analyses)
    other = cells_graph(tmp_path / "other", 10)
    moved = made(other)
    fixed = strict(moved, other)
    moved.load_state_dict(grounder.state_dict())
    assert strict(moved, other) > fixed


@pytest.mark.parametrize("cells", [0, 1])
def test_fewer_than_two_pictured_entities_leave_nothing_to_train(cells: int, tmp_path: Path) -> None:
    small = cells_graph(tmp_path / "graph", cells)
    grounder = made(small)
    trained = {**grounder.state_dict(), "weight": torch.tensor(4.0)}
    before = weights(grounder)
    train_grounder(grounder, QUICK, seed=0)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(grounder), strict=True))
    (found,) = grounder.ground([Query("q", marked(0))], [SHOWN])
    assert len(found) == cells
    grounder.load_state_dict(trained)
    assert len(grounder.ground([Query("q", marked(0))], [SHOWN])[0]) == cells


def test_a_broken_picture_is_told_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    damaged = cells_graph(tmp_path / "graph", 6, damaged=2)
    grounder = made(damaged)
    with caplog.at_level(logging.WARNING):
        train_grounder(grounder, ContrastSettings(epochs=3), seed=0)
    assert damaged.image_files[-1] in caplog.text
    assert all(weight.isfinite().all() for weight in weights(grounder))
    (found,) = grounder.ground([Query("q", marked(0))], [SHOWN])
    assert found[0].entity == damaged.image_entity[0]
    assert {c.entity for c in found[:4]} == set(damaged.image_entity[:4].tolist())
    only_broken = cells_graph(tmp_path / "broken", 3, damaged=3)
    train_grounder(made(only_broken), QUICK, seed=0)


def test_a_score_does_not_depend_on_the_batch(graph: KnowledgeGraph) -> None:
    grounder = made(graph)
    train_grounder(grounder, ContrastSettings(epochs=0), seed=0)
    queries = unseen(graph)[:6]
    together = grounder.ground(queries, [SHOWN] * 6)
    assert together == [grounder.ground([query], [SHOWN])[0] for query in queries]


def test_whitening_by_hand(graph: KnowledgeGraph) -> None:
    metric = LocalMetric(((3, 8),))
    features = torch.randn(50, 192) * torch.linspace(0.5, 2, 192)
    whiten(metric, features)
    cells = metric.maps(features)[0].movedim(1, 3).reshape(-1, 3)
    torch.testing.assert_close(cells.mean(dim=0), torch.zeros(3), atol=1e-4, rtol=0)
    covariance = cells.T.cov()
    assert covariance.diagonal().sub(0.87).abs().max() < 0.12
    assert (covariance - covariance.diagonal().diag()).abs().max() < 0.05


def test_kinds_of_pictures_are_practised_equally(tmp_path: Path) -> None:
    graph = cells_graph(tmp_path / "graph", 12, kinds=("cell", "cell", "cell", "flag"))
    views = made(graph, views=6).views
    kinds = [graph.image_kinds[picture] for picture in views.pictures]
    assert sorted(kinds) == ["cell"] * 3 + ["flag"] * 3
    assert len(made(graph, views=500).views.pictures) == 24


def test_the_loss_by_hand() -> None:
    queries = torch.nn.functional.normalize(torch.randn(2, 4), dim=1)
    pictures = torch.nn.functional.normalize(torch.randn(3, 4), dim=1)
    cosines = queries @ pictures.T
    same = torch.tensor([[True, False, True], [False, True, False]])
    expected = 0.0
    for query, row in zip(queries, same.tolist(), strict=True):
        parts = [float(torch.exp(query @ picture / 0.1)) for picture in pictures]
        accepted = sum(part for part, right in zip(parts, row, strict=True) if right)
        expected -= float(np.log(accepted / sum(parts))) / 2
    assert float(contrastive_loss(cosines, same, 0.1)) == pytest.approx(expected, abs=1e-5)


def test_settings_out_of_range_are_refused(graph: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match=r"grounder\.temperature is 0"):
        ContrastSettings(temperature=0)
    with pytest.raises(ConfigError, match=r"grounder\.batch is 0"):
        ContrastSettings(batch=0)
    with pytest.raises(ConfigError, match="views 0"):
        made(graph, views=0)
    with pytest.raises(ConfigError, match="no finer features"):
        LearnedGrounder(graph, Pixels())
