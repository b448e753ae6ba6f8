"""The folder of a data set made here: its parts move in together, `statistics.json` last as a sign of all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from vispath_lit.errors import DataError
from vispath_lit.whole import folder_beside

STATISTICS = "statistics.json"


def refuse_foreign(out: Path, parts: Sequence[str], kind: str) -> None:
    """Refuses a folder that holds anything but parts of an earlier one.

    Raises:
        DataError: names what is in the way.
    """
    strange = sorted(p.name for p in out.iterdir() if p.name not in parts) if out.is_dir() else []
    if strange or (out.exists() and not out.is_dir()):
        raise DataError(
            f"{out} holds {strange[0] if strange else 'a file'}, which is no part of {kind}; "
            "give an empty folder or one that an earlier call wrote"
        )


@contextmanager
def moved_in(out: Path, parts: Sequence[str]) -> Iterator[Path]:
    """An empty folder beside `out`; its parts take the place of earlier ones where the block ends well."""
    with folder_beside(out) as made:
        yield made
        out.mkdir(exist_ok=True)
        (out / STATISTICS).unlink(missing_ok=True)
        for name in parts:
            old, new = out / name, made / name
            if old.is_dir():
                shutil.rmtree(old)
            else:
                old.unlink(missing_ok=True)
            if new.exists():
                new.replace(old)


def write_statistics(folder: Path, found: Mapping[str, object]) -> None:
    """Writes `statistics.json`."""
    text = json.dumps(found, ensure_ascii=False, indent=2)
    (folder / STATISTICS).write_text(text + "\n", encoding="utf8")
