"""Two workers of a local Ray write the bytes that one process writes."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from PIL import Image
from typer.testing import CliRunner

from vispath_lit.cli import app
from vispath_lit.encoders.efficientnet import EfficientNetLite
from vispath_lit.encoders.minilm import MiniLM
from vispath_lit.engines.engine import Alone, Engine
from vispath_lit.errors import DataError, EngineError, VisPathError
from vispath_lit.kg.importers import metaqa, ntriples, rog, tables, wikidata5m
from vispath_lit.kg.staging.importer import Importer
from vispath_lit.kg.staging.run import ImportReport, import_graph

T = TypeVar("T")
R = TypeVar("R")
pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the extra ray is missing")


@pytest.fixture(scope="module")
def ray_engine() -> Iterator[Engine]:
    """Ray on two processors, started once."""
    import ray

    from vispath_lit.engines.ray_data import RayData

    engine = RayData(2)
    try:
        engine.start()
    except EngineError as error:
        # Ray gives its helpers 15 seconds of wall time to start, whatever else the machine has to do.
        if os.getloadavg()[0] > (os.cpu_count() or 1):
            pytest.skip(f"too much else is running: {error}")
        raise
    yield engine
    ray.shutdown()


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def segments(cache: Path) -> list[tuple[str, bytes]]:
    """The bytes of a cache's vectors; a segment's name holds the time."""
    files = (file for file in cache.rglob("*.seg") if file.is_file())
    return sorted((str(file.parent.relative_to(cache)), file.read_bytes()) for file in files)


def test_results_come_in_the_order_of_the_pieces(ray_engine: Engine) -> None:
    def work(piece: int) -> tuple[int, int]:
        import time

        time.sleep(0.05 * (piece % 3))
        return piece, os.getpid()

    found = list(ray_engine.map(work, lambda: iter(range(12))))
    assert [piece for piece, _ in found] == list(range(12))
    assert os.getpid() not in {process for _, process in found}
    assert list(ray_engine.map(work, lambda: ())) == []


@pytest.mark.parametrize("where", ["work", "pieces"])
def test_an_error_comes_after_the_results_before_it(ray_engine: Engine, where: str) -> None:
    class UnsendableError(VisPathError):
        def __init__(self, file: str, line: int) -> None:
            super().__init__(f"{file}, line {line}: bad")

    def fail(piece: int, here: str) -> int:
        if piece == 2 and here == where:
            raise DataError("a.txt, line 3: empty subject")
        if piece == 3:
            raise UnsendableError("b.txt", 4)
        return piece

    def follow(engine: Engine, first: int) -> tuple[list[int], str]:
        pieces = engine.map(lambda p: fail(p, "work"), lambda: (fail(p, "pieces") for p in range(first, 9)))
        taken: list[int] = []
        with pytest.raises(VisPathError) as caught:
            taken.extend(pieces)
        return taken, str(caught.value)

    assert follow(ray_engine, 0) == follow(Alone(), 0) == ([0, 1], "a.txt, line 3: empty subject")
    taken, said = follow(ray_engine, 3)
    assert taken == []
    assert "b.txt, line 4: bad" in said


def test_a_worker_that_dies_again_and_again_ends_it(ray_engine: Engine) -> None:
    with pytest.raises(EngineError, match=r"Ray gave up.*fewer of them"):
        list(ray_engine.map(lambda _: os._exit(9), lambda: [1]))
    assert list(ray_engine.map(lambda piece: piece + 1, lambda: [1])) == [2]


BAD = ["Q1\tP1\n", "Q1\t~P1\tQ2\n", "\tP1\tQ2\n", "Q\udcff\tP1\tQ2\n"]


def sources(folder: Path) -> dict[str, Importer]:
    """Each format over several files, which are as many pieces; some lines are bad."""
    folder.mkdir()
    for i in range(5):
        part = folder / f"wiki{i}.txt"
        lines = [f"Q{j % 97}\tP{j % 7}\tQ{j * i % 89}\n" for j in range(300)] + BAD[: i % 3]
        part.write_text("".join(lines), encoding="utf8", errors="surrogateescape")
        data = "".join(f'<http://x/{j % 31}> <http://p/{j % 3}> "v {j * i % 17}"@en .\n' for j in range(99))
        (folder / f"n{i}.nt.gz").write_bytes(gzip.compress((data + "oops\n").encode()))
        rows = "".join(f"a{j % 11},likes,b{j * i % 13}\n" for j in range(40))
        (folder / f"t{i}.csv").write_text(rows)
        triples = ", ".join(f'["s{j}", "likes", "o{j * i}"]' for j in range(4))
        asked = '"question": "q", "answer": [], "q_entity": [], "a_entity": []'
        (folder / f"train-{i}.jsonl").write_text(f'{{"id": "{i}", {asked}, "graph": [{triples}]}}\n')
    (folder / "entity.txt").write_text("".join(f"Q{j}\tName {j}\tother\n" for j in range(97)))
    (folder / "kb.txt").write_text("Heat|directed_by|Michael Mann\nHeat|release_year|1995\n")
    every = {kind: tuple(sorted(folder.glob(kind))) for kind in ("wiki*", "*.nt.gz", "*.csv", "*.jsonl")}
    found: dict[str, Importer] = {
        "wikidata5m": wikidata5m.Format((*every["wiki*"], folder / "entity.txt")),
        "tables": tables.Format(every["*.csv"]),
        "rog": rog.Format(every["*.jsonl"]),
        "metaqa": metaqa.Format((folder,)),
    }
    if importlib.util.find_spec("pyoxigraph"):
        found["ntriples"] = ntriples.Format(every["*.nt.gz"])
    return found


def test_an_import_writes_the_same_store_and_report(
    ray_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # Paths that are relative are those of this process.
    for name, importer in sources(Path("sources")).items():
        reports: list[ImportReport] = []
        for engine, out in ((Alone(), "alone"), (ray_engine, "ray")):
            reports.append(import_graph(importer, Path(out, name), on_error="skip", engine=engine))
        assert replace(reports[1], path=reports[0].path) == reports[0]
        assert reports[0].triples > 0
        assert contents(Path("ray", name)) == contents(Path("alone", name))
    assert [file.name for file in Path("ray").iterdir() if file.name.startswith(".")] == []


def test_a_bad_line_in_a_worker_is_named_as_ever(ray_engine: Engine, tmp_path: Path) -> None:
    importer = sources(tmp_path / "sources")["wikidata5m"]
    said = []
    for engine in (Alone(), ray_engine):
        with pytest.raises(DataError) as caught:
            import_graph(importer, tmp_path / "store", engine=engine)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "wiki1.txt, line 301: wrong number of columns (2, expected 3)" in said[0]
    damaged = tmp_path / "cut.txt.gz"
    damaged.write_bytes(gzip.compress(b"Q1\tP1\tQ2\n" * 9999)[:-50])
    with pytest.raises(DataError, match=r"cut\.txt\.gz.*damaged or cut short"):
        import_graph(wikidata5m.Format((damaged,)), tmp_path / "store", engine=ray_engine)


def test_ray_goes_on_where_one_process_stopped(ray_engine: Engine, tmp_path: Path) -> None:
    class Stopped:
        def map(self, work: Callable[[T], R], pieces: Callable[[], Iterable[T]]) -> Iterator[R]:
            yield from itertools.islice(map(work, pieces()), 2)
            raise OSError(28, "No space left on device")

    importer = sources(tmp_path / "sources")["wikidata5m"]
    whole = import_graph(importer, tmp_path / "whole", on_error="skip")
    with pytest.raises(DataError, match="goes on where it stopped"):
        import_graph(importer, tmp_path / "store", on_error="skip", engine=Stopped())
    report = import_graph(importer, tmp_path / "store", on_error="skip", engine=ray_engine)
    assert replace(report, path=whole.path) == whole
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")


def test_texts_are_embedded_into_the_same_cache(ray_engine: Engine, tmp_path: Path) -> None:
    texts = [f"river {i} flows through {'a long valley of ' * (i % 5)}land {i}" for i in range(60)]
    texts += ["", "Zürich", "lone \ud800 surrogate", "word " * 300, texts[0]]
    vectors = []
    for name, engine in (("alone", Alone()), ("ray", ray_engine)):
        encoder = MiniLM(tmp_path / name, dtype="float32", batch_tokens=256, threads=1, engine=engine)
        vectors.append((encoder.encode(texts), *encoder.tokens(texts[:9])))
        encoder.flush()
    assert all(one.equal(other) for one, other in zip(*vectors, strict=True))
    assert segments(tmp_path / "ray") == segments(tmp_path / "alone")
    assert len(segments(tmp_path / "ray")) == 2


def test_pictures_are_embedded_into_the_same_cache(ray_engine: Engine, tmp_path: Path) -> None:
    pictures = [Image.new("RGB", (30 + i, 40), (9 * i, 99, 255 - 9 * i)) for i in range(7)]
    for name, engine in (("alone", Alone()), ("ray", ray_engine)):
        encoder = EfficientNetLite(
            tmp_path / name, size=64, dtype="float32", batch=2, threads=1, engine=engine
        )
        encoder.encode(pictures[:3])
        encoder.fine.encode(pictures)
        encoder.flush()
    assert segments(tmp_path / "ray") == segments(tmp_path / "alone")
    assert len(segments(tmp_path / "ray")) == 2


def test_the_command_embeds_a_graph(
    ray_engine: Engine, toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"id": "1", "question": "What is the capital of France?", "image": null}\n')
    words = ["kg", "embed", str(toy_folder), "--questions", str(questions), "--images", "--json"]
    said = []
    for name, chosen in (("alone", []), ("ray", ["--engine", "ray", "--workers", "2"])):
        monkeypatch.setenv("VISPATH_CACHE", str(tmp_path / name))
        done = CliRunner().invoke(app, [*words, *chosen])
        assert done.exit_code == 0, done.output
        said.append(done.stdout.splitlines()[-1])
    assert said[0] == said[1] == '{"names": 22, "relations": 14, "questions": 1, "images": 3}'
    assert segments(tmp_path / "ray") == segments(tmp_path / "alone")
    for table in ("names", "references"):
        assert contents(tmp_path / "ray" / table) == contents(tmp_path / "alone" / table) != {}
