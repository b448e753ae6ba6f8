"""PathQuestion (Zhou, Huang and Zhu, 2018): questions in words over a part of Freebase, with gold paths.

The files are the published ones, in a folder of the user's: `2H-kb.txt` and `3H-kb.txt` hold a fact a line,
`PQ-2H.txt` and `PQ-3H.txt` a question a line:

    subject<TAB>relation<TAB>object
    question<TAB>answer(answer/another answer/)<TAB>subject#relation#entity#relation#answer#<end>#answer
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal, NoReturn

import xxhash

from vispath_lit.data.lines import numbered_lines
from vispath_lit.data.sources.custom import divide
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.cached import store_of
from vispath_lit.kg.tsv import escape, write_table
from vispath_lit.types import GoldPath, Question
from vispath_lit.whole import folder_beside

Fact = tuple[str, str, str]
Successors = Mapping[tuple[str, str], Sequence[str]]
HOPS = {2: (2,), 3: (3,), "both": (2, 3)}
PROTOCOLS = ("random", "start_disjoint")
END = "<end>"
REMEDY = "; mend the line or fetch the published file again"
MAX_LINE = 1 << 20  # Bytes; a longer line is refused, so that a broken file cannot fill the memory.
MAX_WALKS = 10_000  # Walks of one relation sequence looked at for one question.
MAX_PATHS = 64  # Gold paths kept a question.


class PathQuestion:
    """`data=pathquestion data.folder=FOLDER`.

    The published path comes first among a question's gold paths; the other walks of its relations that end in
    a listed answer are gold too, as the words do not tell them apart.

    Args:
        folder: holds the published files.
        cache_dir: where the graph is kept, by the content of its facts.
        hops: 2, 3, or `both` over the facts of both.
        protocol: `random` splits the questions 8:1:1, as the literature does, so that paraphrases of a test
            question are in training; `start_disjoint` splits the start entities 8:1:1.
        seed: of the split.

    Raises:
        ConfigError: a value that is not allowed, or no folder.
        DataError: a missing file.
    """

    name = "pathquestion"

    def __init__(
        self,
        folder: str,
        cache_dir: str | Path,
        hops: Literal[2, 3, "both"] = 2,
        protocol: Literal["random", "start_disjoint"] = "random",
        seed: int = 0,
    ) -> None:
        if hops not in HOPS:
            raise ConfigError(f"data.hops is {hops!r}; allowed are {list(HOPS)}")
        if protocol not in PROTOCOLS:
            raise ConfigError(f"data.protocol is {protocol!r}; allowed are {list(PROTOCOLS)}")
        self.hops = HOPS[hops]
        self.protocol = protocol
        self.seed = seed
        self.cache = Path(cache_dir)
        place = Path(folder).expanduser().absolute()
        self.facts_files = [_existing(place / f"{n}H-kb.txt") for n in self.hops]
        self.question_files = [_existing(place / f"PQ-{n}H.txt") for n in self.hops]

    def prepare(self) -> Path:
        key = xxhash.xxh3_128_hexdigest("\n".join(map("\t".join, self.facts)).encode())
        folder = self.cache / "pathquestion" / key
        if not folder.is_dir():
            write_graph(self.facts, folder)
        return store_of(folder, self.cache)

    def questions(self, split: str) -> list[Question]:
        by_question = self.protocol == "random"
        found = divide(self.all_questions, self.seed, "id" if by_question else "topic_entity")
        return found.get(split, [])

    @cached_property
    def facts(self) -> list[Fact]:
        """The distinct facts, sorted: the graph does not depend on the order of the lines."""
        return sorted({fact for file in self.facts_files for fact in read_facts(file)})

    @cached_property
    def all_questions(self) -> list[Question]:
        successors: dict[tuple[str, str], list[str]] = defaultdict(list)
        for subject, relation, object_ in self.facts:
            successors[subject, relation].append(object_)
        return [
            question
            for hops, file in zip(self.hops, self.question_files, strict=True)
            for question in read_pathquestion(file, hops, successors)
        ]


def read_facts(file: Path) -> Iterator[Fact]:
    """The facts of a file, in order; doubled tabs between the fields are one.

    Raises:
        DataError: a line that is no fact; names file and line.
    """
    for number, text in _lines(file):
        fields = [field.strip() for field in text.split("\t") if field.strip()]
        if len(fields) != 3:
            _fail(file, number, f"found {len(fields)} fields, expected subject<TAB>relation<TAB>object")
        if fields[1].startswith("~"):
            _fail(file, number, f"relation {fields[1][:80]!r} begins with ~, the mark of an inverse step")
        yield fields[0], fields[1], fields[2]


def read_pathquestion(file: Path, hops: int, successors: Successors) -> Iterator[Question]:
    """The questions of a file, in order, each with its gold paths over `successors`.

    Raises:
        DataError: a line that is no question of so many hops, or whose path is not made of facts; names file
            and line.
    """
    for number, text in _lines(file):
        fields = [field.strip() for field in text.split("\t") if field.strip()]
        if len(fields) != 3:
            _fail(file, number, f"found {len(fields)} fields, expected question<TAB>answers<TAB>path")
        start, path = _path(file, number, fields[2], hops, successors)
        answers = _answers(file, number, fields[1], path[-1][1])
        yield Question(
            id=f"pq{hops}h-{number}",
            text=_sentence(fields[0]),
            answers=tuple(map(spoken, answers)),
            answer_ids=answers,
            topic_entity=start,
            gold_paths=_gold(start, path, answers, successors),
            hops=hops,
        )


def write_graph(facts: Sequence[Fact], folder: Path) -> None:
    """Writes a graph folder whose labels are the names with spaces."""
    entities = sorted({name for subject, _, object_ in facts for name in (subject, object_)})
    relations = sorted({relation for _, relation, _ in facts})
    with folder_beside(folder) as partial:
        for file, names in (("entities.tsv", entities), ("relations.tsv", relations)):
            write_table(
                partial / file, ("id", "label"), ((escape(name), escape(spoken(name))) for name in names)
            )
        rows = (tuple(map(escape, fact)) for fact in facts)
        write_table(partial / "triples.tsv", ("subject", "relation", "object"), rows)
        if not folder.is_dir():  # Another process may have been faster.
            partial.rename(folder)


def spoken(name: str) -> str:
    """A name as people write it: `place_of_birth` is "place of birth"."""
    return " ".join(name.replace("_", " ").split()) or name


def _sentence(text: str) -> str:
    """The question without the spaces of its tokens: "the sex of claudius's husband?"."""
    return spoken(text).replace(" 's", "'s").replace(" ?", "?")


def _path(file: Path, number: int, text: str, hops: int, successors: Successors) -> tuple[str, GoldPath]:
    items = [item.strip() for item in text.split("#")]
    if len(items) != 2 * hops + 3 or items[-2] != END or not all(items):
        _fail(
            file,
            number,
            f"found the path {text[:120]!r}, expected {hops} hops as subject#relation#entity...#{END}#answer",
        )
    if items[-1] != items[-3]:
        _fail(file, number, f"the path ends in {items[-3][:80]!r}, but its answer is {items[-1][:80]!r}")
    path = tuple(zip(items[1:-2:2], items[2:-2:2], strict=True))
    here = items[0]
    for relation, entity in path:
        if entity not in successors.get((here, relation), ()):
            fact = f"{here[:80]} {relation[:80]} {entity[:80]}"
            _fail(file, number, f"the step {fact!r} of the path is none of the facts of {hops}H-kb.txt")
        here = entity
    return items[0], path


def _answers(file: Path, number: int, text: str, end: str) -> tuple[str, ...]:
    """The answer that ends the path, then the others of "answer(answer/other/)"."""
    if not (text.startswith(f"{end}(") and text.endswith(")")):
        _fail(file, number, f"found the answers {text[:120]!r}, expected '{end[:80]}(answer/another/)'")
    listed = (name.strip() for name in text[len(end) + 1 : -1].split("/"))
    return tuple(dict.fromkeys([end, *(name for name in listed if name)]))


def _gold(start: str, path: GoldPath, answers: Sequence[str], successors: Successors) -> tuple[GoldPath, ...]:
    """The published path, then every other walk of its relations that ends in a listed answer."""
    relations = [relation for relation, _ in path]
    walks = islice(_walks(start, relations, successors), MAX_WALKS)
    others = (walk for walk in walks if walk[-1][1] in answers)
    return tuple(islice(dict.fromkeys([path, *others]), MAX_PATHS))


def _walks(start: str, relations: Sequence[str], successors: Successors) -> Iterator[GoldPath]:
    if not relations:
        yield ()
        return
    for entity in successors.get((start, relations[0]), ()):
        for rest in _walks(entity, relations[1:], successors):
            yield ((relations[0], entity), *rest)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines that are not blank."""
    for number, line in numbered_lines(file, MAX_LINE, REMEDY):
        try:
            text = line.decode("utf8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            _fail(file, number, f"not UTF-8 ({error.reason} at byte {error.start})")
        if "\0" in text:
            _fail(file, number, "found a NUL character")
        if text.strip():
            yield number, text


def _fail(file: Path, number: int, reason: str) -> NoReturn:
    raise DataError(f"{file}, line {number}: {reason}{REMEDY}")


def _existing(file: Path) -> Path:
    if not file.is_file():
        raise DataError(
            f"{file} does not exist: data.folder names the folder with the published files of PathQuestion"
        )
    return file
