"""The place where an import keeps what it has parsed, so that a stopped one goes on where it was.

    .OUT.import/  lock, state.json (what is done and counted; rewritten after each unit), shards of tables

A shard is written under another name and renamed, and counts only once the state names its unit: after a kill
at any moment the stage is as after some whole unit.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from vispath_lit.engines.engine import Alone, Engine
from vispath_lit.errors import DataError
from vispath_lit.kg.faults import OnError
from vispath_lit.kg.staging.importer import COLUMNS, Batch, Importer, TableName, Unit
from vispath_lit.kg.staging.tally import Tally
from vispath_lit.progress import tell, track

STATE = "state.json"
LONGEST = 200  # bytes of a name; file systems have room for 255
FORMAT = 2  # Raised whenever equal sources are cut into other units.


@dataclass(slots=True)
class Stage:
    """The folder beside `target`; use it as a context manager, which holds its lock."""

    target: Path
    key: str
    on_error: OnError
    tally: Tally = field(init=False)
    done: int = 0
    _lock: FileLock | None = None

    @property
    def folder(self) -> Path:
        name = self.target.name
        if len(os.fsencode(name)) > LONGEST:  # a prefix and a digest leave room for what is put around them
            name = f"{name[:50]}.{xxhash.xxh3_64_hexdigest(os.fsencode(name))}"
        return self.target.with_name(f".{name}.import")

    def __enter__(self) -> Stage:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(str(self.folder / "lock"), timeout=0)
        try:
            self._lock.acquire()
        except Timeout as error:
            raise DataError(f"{self.target}: another import into it is running; wait for it") from error
        self._resume()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.release()

    def fill(self, importer: Importer, engine: Engine | None = None) -> None:
        """Parses all units that are not there yet; the engine's workers parse, this process writes."""
        if self.done:
            tell(f"going on after {self.done} parts of {self.folder}")
        parsed = (engine or Alone()).map(partial(_parse, self.on_error), partial(_left, importer, self.done))
        for part in track(parsed, "reading"):
            for number, shard in enumerate(part.shards):
                self._write(f"{self.done:07d}-{number:03d}", shard)
            self.tally.add(part.tally)
            self.done += 1
            self._save()

    def shards(self, table: TableName) -> Iterator[Shard]:
        """The table's shards, in order."""
        for file in sorted(self.folder.glob(f"*-{table}.arrow")):
            if int(file.name.split("-", 1)[0]) < self.done:
                yield Shard(file)

    def remove(self) -> None:
        """Ends the stage; its lock is let go first."""
        self.__exit__()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, name: str, shard: Encoded) -> None:
        partial = self.folder / f"{name}.partial"
        partial.write_bytes(shard.data)
        partial.replace(self.folder / f"{name}-{shard.table}.arrow")

    def _save(self) -> None:
        state = {"format": FORMAT, "key": self.key, "done": self.done, "tally": self.tally.as_dict()}
        partial = self.folder / f"{STATE}.partial"
        partial.write_text(json.dumps(state, ensure_ascii=False), encoding="utf8")
        partial.replace(self.folder / STATE)

    def _resume(self) -> None:
        """Takes up the state of the same import, or empties the folder."""
        try:
            state = json.loads((self.folder / STATE).read_text(encoding="utf8"))
            if state["format"] == FORMAT and state["key"] == self.key:
                self.tally = Tally.from_dict(state["tally"], self.on_error)
                self.done = int(state["done"])
                return
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass  # None, or one that cannot be used: begin anew.
        self.tally, self.done = Tally(self.on_error), 0
        for entry in self.folder.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry.name != "lock":
                entry.unlink()


class Encoded(NamedTuple):
    """A batch as the bytes of a compressed Arrow file."""

    table: TableName
    data: Any


class _Parsed(NamedTuple):
    """What became of a unit."""

    tally: Tally
    shards: list[Encoded]


def _left(importer: Importer, done: int) -> Iterator[Unit]:
    """The units behind those that are done."""
    return islice(importer.units(), done, None)


def _parse(on_error: OnError, unit: Unit) -> _Parsed:
    tally = Tally(on_error, listed=[])
    shards: list[Encoded] = []
    for batch in unit.parse(tally):
        if len(batch.lines):
            tally.read[batch.table] += len(batch.lines)
            shards.append(Encoded(batch.table, _encoded(batch)))
    return _Parsed(tally, shards)


def _encoded(batch: Batch) -> Any:
    columns = dict(zip(COLUMNS[batch.table], batch.columns, strict=True))
    columns["line"] = pa.array(batch.lines.astype(np.int64))
    table = pa.record_batch(columns).replace_schema_metadata(
        {"source": batch.source.encode("utf8", "replace")}
    )
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_batch(table)
    return sink.getvalue()


@dataclass(frozen=True, slots=True)
class Shard:
    """A written batch."""

    file: Path

    def read(self, *names: str) -> tuple[list[Any], NDArray[np.int64], str]:
        """The named columns, the lines, `[n]`, and the source of the rows; other columns are not read."""
        try:
            with pa.OSFile(str(self.file)) as opened:
                schema = pa.ipc.open_file(opened).schema
                fields = [schema.get_field_index(name) for name in (*names, "line")]
                options = pa.ipc.IpcReadOptions(included_fields=fields)
                table = pa.ipc.open_file(opened, options=options).read_all()
        except (OSError, pa.ArrowException) as error:
            raise DataError(
                f"{self.file}: cannot be read ({error}); remove {self.file.parent} and import again"
            ) from error
        source = (table.schema.metadata or {}).get(b"source", b"").decode("utf8", "replace")
        columns = [table.column(name).chunk(0) for name in names]
        return columns, table.column("line").to_numpy(), source
