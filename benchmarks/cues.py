"""How well a picture reader learns to read arrows and strips of colours, for countries that it never saw.

The words are taken as understood: of an arrow the relation counts, of a strip the colours of the tail's flag,
and the candidates are the neighbours of the country that the cue is about.

python benchmarks/cues.py [--root data/atlas] [--wide] [--epochs 8] [--seed 0]
"""

from __future__ import annotations

import argparse
import zlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from vispath_lit.kg.images import load_image
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.launch.config import load_config
from vispath_lit.launch.parts import make_world
from vispath_lit.launch.questions import split_questions
from vispath_lit.models.intents.picture import PictureReader, Seen
from vispath_lit.models.neighbourhoods.facts import CommonFacts
from vispath_lit.models.picture_loss import FACTS
from vispath_lit.progress import console, track
from vispath_lit.types import Query, Question

WIDTH, BATCH, FOLDS = 192, 32, 5


@dataclass(frozen=True, slots=True, eq=False)
class Cue:
    """One cue question: its picture, the step that the cue decides and that step's candidates."""

    query: Query
    arrow: bool
    country: str
    relation: NDArray[np.int64]
    tail: NDArray[np.int64]
    gold: int


def cue_of(graph: KnowledgeGraph, question: Question) -> Cue:
    """The cue of a question of Atlas; its tags tell kind and hop."""
    walk, hop = question.gold_paths[0], 1 if "cue_hop:1" in question.tags else 2
    country = str(question.topic_entity if hop == 1 else walk[hop - 2][1])
    entity = graph.entity_index(country)
    edges = slice(int(graph.out_indptr[entity]), int(graph.out_indptr[entity + 1]))
    relation, tail = (np.array(x[edges], dtype=np.int64) for x in (graph.out_relation, graph.out_tail))
    borders = [graph.relation_id(int(r)).startswith("borders_") for r in relation]
    relation, tail = relation[borders], tail[borders]
    walked, end = walk[hop - 1]
    right = (relation == graph.relation_index(walked)) & (tail == graph.entity_index(end))
    assert question.image is not None
    picture = Query(question.text, load_image(question.image))
    return Cue(picture, "cue:arrow" in question.tags, country, relation, tail, int(np.argmax(right)))


class Reader(nn.Module):
    """A `PictureReader` and vectors of relations, which it speaks in."""

    def __init__(self, facts: CommonFacts, image_encoder: object, relations: int, colours: Tensor) -> None:
        super().__init__()
        listed = facts.fact_relation, facts.fact_share
        self.picture = PictureReader(image_encoder, WIDTH, 4, 4, 0.1, *listed)  # type: ignore[arg-type]
        self.relations = nn.Parameter(torch.randn(relations, WIDTH) * 0.5)
        self.neighbourhood = facts
        self.colours = colours

    def forward(self, cues: list[Cue]) -> tuple[Seen, list[Tensor]]:
        """What pictures tell, and the logits of each cue's candidates."""
        seen = self.picture([cue.query for cue in cues], self.relations)
        logits = []
        for i, cue in enumerate(cues):
            facts = self.neighbourhood.encode(torch.from_numpy(cue.tail))
            of_tail = facts @ (seen.tails[i] * self.colours)
            logits.append(seen.relations[i][torch.from_numpy(cue.relation)] if cue.arrow else of_tail)
        return seen, logits

    def loss(self, cues: list[Cue]) -> Tensor:
        """The two losses of `GuidedWalk`: the step's list, and the facts of its tail."""
        seen, logits = self(cues)
        pairs = zip(logits, cues, strict=True)
        lists = torch.stack([-list_.log_softmax(0)[cue.gold] for list_, cue in pairs]).mean()
        tails = torch.tensor([int(cue.tail[cue.gold]) for cue in cues])
        true = self.neighbourhood.encode(tails)
        facts = F.binary_cross_entropy_with_logits(seen.odds, true, reduction="none").sum(dim=1).mean()
        return lists + FACTS * facts

    @torch.no_grad()
    def right(self, cues: list[Cue], arrow: bool) -> float:
        """The share of the arrows, or of the strips, whose best candidate is the right one."""
        asked = [cue for cue in cues if cue.arrow == arrow]
        hits = []
        for low in range(0, len(asked), 4 * BATCH):
            some = asked[low : low + 4 * BATCH]
            pairs = zip(self(some)[1], some, strict=True)
            hits += [int(list_.argmax()) == cue.gold for list_, cue in pairs]
        return float(np.mean(hits))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", default="data/atlas", help="where Atlas is, or is built")
    parser.add_argument("--wide", action="store_true", help="learn from the cues of train_wide, too")
    parser.add_argument("--epochs", type=int, default=8, help="passes over the cues")
    parser.add_argument("--seed", type=int, default=0, help="of weights, order and the countries held out")
    chosen = parser.parse_args()
    torch.manual_seed(chosen.seed)
    rng = np.random.default_rng(chosen.seed)
    wide = str(chosen.wide).lower()
    world = make_world(load_config("train", [f"data.source.root={chosen.root}", f"data.source.wide={wide}"]))
    graph = world.graph
    questions = {split: split_questions(world, split, None) for split in ("train", "val")}
    cues = {
        split: [cue_of(graph, q) for q in track(some, f"reading the cues of {split}") if "cue" in q.tags]
        for split, some in questions.items()
    }
    held = [zlib.crc32(cue.country.encode()) % FOLDS == chosen.seed % FOLDS for cue in cues["train"]]
    learnt = [cue for cue, out in zip(cues["train"], held, strict=True) if not out]
    unseen = [cue for cue, out in zip(cues["train"], held, strict=True) if out]
    facts = CommonFacts(graph)
    colours = torch.tensor([graph.relation_id(int(r)) == "flag_colour" for r in facts.fact_relation])
    reader = Reader(facts, world.image_encoder, 2 * graph.num_relations, colours)
    optimizer = torch.optim.AdamW(reader.parameters(), lr=1e-3, weight_decay=0.01, betas=(0.9, 0.98))
    steps = chosen.epochs * (len(learnt) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps + 1, pct_start=0.05)
    for _ in track(range(chosen.epochs), "learning to read cues"):
        order = rng.permutation(len(learnt))[: len(learnt) // BATCH * BATCH].reshape(-1, BATCH)
        for rows in order:
            optimizer.zero_grad()
            reader.loss([learnt[i] for i in rows]).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    reader.eval()
    for name, some in (("training countries held out", unseen), ("val", cues["val"])):
        arrows, strips = reader.right(some, arrow=True), reader.right(some, arrow=False)
        console.print(f"{name}: {len(some)} cues, arrows {arrows:.3f}, strips {strips:.3f}", highlight=False)


if __name__ == "__main__":
    main()
