"""JSON objects of large files, a unit at a time: JSON Lines, or one array of objects."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NoReturn

from vispath_lit.errors import DataError
from vispath_lit.kg.staging.streams import MAX_LINE, Block, Member
from vispath_lit.kg.staging.tally import Tally

CHUNK = 4 << 20  # Bytes; objects of an array that are decoded at a time.
Numbered = tuple[int, dict[str, Any]]
_BLANKS = re.compile(r"\s*+")


@dataclass(frozen=True, slots=True)
class Records:
    """Some objects of a file; `load` parses them, with their line (in an array: their number)."""

    source: str
    load: Callable[[Tally], Iterator[Numbered]]


def records(member: Member) -> Iterator[Records]:
    """The objects of a JSON file, whichever of both forms it has.

    Raises:
        DataError: a damaged archive, or an array that is not valid JSON.
    """
    blocks = member.blocks(CHUNK)
    first = next(blocks, None)
    if first is None:
        return
    if first.data.lstrip()[:1] == b"[":
        yield from _array(first, blocks)
        return
    for block in chain([first], blocks):
        yield Records(block.source, partial(_lines, block))


def _lines(block: Block, tally: Tally) -> Iterator[Numbered]:
    for offset, line in enumerate(block.data.split(b"\n")):
        if not line.strip():
            continue
        number = block.line + offset
        try:
            record = _decoder().decode(line.decode("utf8"))
        except (ValueError, RecursionError) as error:
            tally.skip(block.source, number, "not valid JSON in UTF-8", str(error)[:200])
            continue
        if isinstance(record, dict):
            yield number, record
        else:
            tally.skip(block.source, number, "no JSON object", repr(record)[:80])


def _array(first: Block, blocks: Iterator[Block]) -> Iterator[Records]:
    """Decodes an array as it is read; a fault in its syntax ends it, whatever is to be skipped."""
    decode = codecs.getincrementaldecoder("utf8")().decode
    source, number = first.source, 0
    text = _utf8(decode, first, source).lstrip().removeprefix("[")
    decoder, ended = _decoder(), False
    while not ended:
        found: list[Numbered] = []
        at = _filled(text, 0)
        if number and text.startswith(",", at):
            at = _filled(text, at + 1)
        while at < len(text) and not (ended := text.startswith("]", at)):
            try:  # By position: to cut off what was read would copy all of the rest for each object.
                record, end = decoder.raw_decode(text, at)
            except RecursionError as error:
                raise _broken(source, number, "nested too deeply") from error
            except ValueError as error:
                if len(text) - at > MAX_LINE:
                    raise _broken(source, number, str(error)[:200]) from error
                break
            number += 1
            found.append((number, record))
            at = _filled(text, end)
            if text.startswith(",", at):
                at = _filled(text, at + 1)
            elif at < len(text) and not text.startswith("]", at):
                raise _broken(source, number, f"found {text[at : at + 40]!r} behind it, expected , or ]")
        text = text[at:]
        if found:
            yield Records(source, partial(_objects, source, found))
        if not ended:
            block = next(blocks, None)
            if block is None:
                raise _broken(source, number, f"the array does not end; its rest begins {text[:80]!r}")
            text += _utf8(decode, block, source)


def _filled(text: str, at: int) -> int:
    """Where the blanks at a place end."""
    match = _BLANKS.match(text, at)
    assert match is not None  # it may be empty
    return match.end()


def _objects(source: str, found: list[tuple[int, Any]], tally: Tally) -> Iterator[Numbered]:
    for number, record in found:
        if isinstance(record, dict):
            yield number, record
        else:
            tally.skip(source, number, "no JSON object", repr(record)[:80])


def _utf8(decode: Callable[[bytes], str], block: Block, source: str) -> str:
    try:
        return decode(block.data)
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: not UTF-8 after line {block.line} ({error.reason})") from error


def _broken(source: str, number: int, found: str) -> DataError:
    return DataError(f"{source}: not a valid JSON array after object {number}: {found}; fetch the file again")


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(parse_constant=_refuse)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
