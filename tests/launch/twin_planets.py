"""The planets of the examples, with questions that nothing but a picture tells apart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

PLANETS = Path(__file__).parents[2] / "examples" / "planets"


def with_twins(folder: Path) -> Path:
    """A copy of the example in `folder`, with two such questions more in train and two in val."""
    made = Path(shutil.copytree(PLANETS, folder / "planets"))
    asked = [json.loads(line) for line in (made / "questions.jsonl").read_text("utf8").splitlines()]
    of_moon = {question["id"]: question for question in asked if question["topic_entity"] == "moon"}
    with (made / "questions.jsonl").open("a", encoding="utf8") as file:
        for split in ("train", "val"):
            for name in ("p01", "p05"):
                twin = {"id": f"{split} {name}", "question": f"What is at the end, {split}?", "split": split}
                file.write(json.dumps({**of_moon[name], **twin}) + "\n")
    return made
