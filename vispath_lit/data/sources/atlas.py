"""Atlas: the embedded graph and questions, built once from packages and kept in a folder."""

from __future__ import annotations

from pathlib import Path

from vispath_lit.data.atlas.build import build_atlas
from vispath_lit.data.questions import read_questions
from vispath_lit.types import Question


class Atlas:
    """Reads Atlas from `root`, building it there first where it is missing.

    Args:
        root: the folder that holds `store/` and `questions/`.
        workers: processes that draw pictures; None for one a core.
        wide: whether the questions of train_wide are training questions too, behind those of train.
    """

    name = "atlas"

    def __init__(self, root: str, workers: int | None = None, wide: bool = False) -> None:
        self.root = Path(root)
        self.workers = workers
        self.wide = wide

    def prepare(self) -> Path:
        if not (self.root / "statistics.json").is_file():  # written last
            build_atlas(self.root, workers=self.workers)
        return self.root / "store"

    def questions(self, split: str) -> list[Question]:
        splits = ["train", "train_wide"] if split == "train" and self.wide else [split]
        files = [self.root / "questions" / f"{name}.jsonl" for name in splits]
        return [question for file in files if file.is_file() for question in read_questions(file)]
