"""Validation as users meet it: the whole search, given the start, on a part of the val questions.

It gives the scores that choose the checkpoint, and writes what the newest validation saw into the run folder:
    validation.jsonl    one line a question: answer, path, right or wrong
    validation.html     the same for people, with pictures, calibration and where gold paths were pruned
    validation.svg      accuracy over confidence
A W&B logger gets the plot and the questions as a table of texts each time, and the page with its pictures
once, when training ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytorch_lightning as pl
from pytorch_lightning.loggers import WandbLogger

from vispath_lit.evaluation.comparison import NOTHING, assemble
from vispath_lit.evaluation.evaluator import Evaluation, evaluate
from vispath_lit.evaluation.files import write_text
from vispath_lit.evaluation.records import Record, write_records
from vispath_lit.evaluation.report import calibration_plot, where_lost, write_report
from vispath_lit.evaluation.summary import averages, by_hop
from vispath_lit.launch.parts import World
from vispath_lit.protocols import System
from vispath_lit.types import Question

COLUMNS = (
    "question",
    "image",
    "right",
    "answer",
    "accepted",
    "path",
    "gold path",
    "hops",
    "lost",
    "confidence",
)
BY_HOP = ("hits@1", "path_hit@3")


class Validation(pl.Callback):
    """Called for the scores; as a callback it then writes and logs what the search did.

    Args:
        questions: val questions, the same at each validation.
        folder: the run folder.
        name: of the data, for the page.
        seed: of the questions on the page and of the intervals.
    """

    def __init__(
        self,
        world: World,
        system: System,
        questions: Sequence[Question],
        folder: Path,
        name: str,
        seed: int = 0,
    ) -> None:
        self.world = world
        self.system = system
        self.questions = questions
        self.folder = folder
        self.name = name
        self.seed = seed
        self.done: Evaluation | None = None

    def __call__(self) -> Mapping[str, float]:
        """Scores by metric name, and some of them by gold number of hops (`path_hit@3/2`)."""
        world = self.world
        self.done = evaluate(self.system, self.questions, world.graph, world.text_encoder, grant_start=True)
        scores = {name: value for name, value in averages(self.done.records).items() if "@" in name}
        for hop, part in by_hop(self.done.records).items():
            found = averages(part, BY_HOP)
            scores |= {f"{name}/{hop}": found[name] for name in BY_HOP if name in found}
        return scores

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.done is None or not trainer.is_global_zero or trainer.sanity_checking:
            return
        self.write(self.done)
        self._log(trainer, self.media(self.done.records))

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        page = self.folder / "validation.html"
        if self.done is not None and trainer.is_global_zero:
            self._log(trainer, {"val/report": _html(page)})

    def _log(self, trainer: pl.Trainer, media: dict[str, object]) -> None:
        for logger in trainer.loggers:
            if isinstance(logger, WandbLogger):
                logger.experiment.log(media | {"trainer/global_step": trainer.global_step})

    def write(self, done: Evaluation) -> None:
        """The three files."""
        metrics = assemble(
            {NOTHING: done}, data=self.name, split="val, start given", fingerprints={}, seed=self.seed
        )
        write_records(self.folder / "validation.jsonl", done.records)
        write_report(self.folder / "validation.html", metrics, done.records, self.questions, seed=self.seed)
        write_text(self.folder / "validation.svg", calibration_plot(metrics))

    def media(self, records: Sequence[Record]) -> dict[str, object]:
        """What W&B shows each time; pictures inside its tables are lost offline, so those are on the page."""
        import wandb

        images = {question.id: question.image for question in self.questions}
        rows = [row(record, images[record.id]) for record in records]
        return {
            "val/calibration": _html(self.folder / "validation.svg"),
            "val/questions": wandb.Table(columns=list(COLUMNS), data=rows),
        }


def _html(file: Path) -> object:
    import wandb

    return wandb.Html(file.read_text(encoding="utf8"), inject=False)


def row(record: Record, image: Path | str | None) -> list[object]:
    """One line of the table, in the order of `COLUMNS`; a picture is named, the page shows it."""
    return [
        record.question,
        "" if image is None else Path(image).name,
        bool(record.correct),
        record.answer,
        " | ".join(record.gold.answers),
        "" if record.path is None else record.path.words,
        record.gold.paths[0].words if record.gold.paths else "",
        record.gold.hops,
        where_lost(record.lost),
        record.confidence,
    ]
