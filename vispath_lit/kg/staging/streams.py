"""Opens what public data sets come as: files, folders, and archives, told apart by content, never unpacked.

Everything is read once, from front to back, so that a large archive needs neither memory nor disk.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

from vispath_lit.errors import DataError

BLOCK = 4 << 20  # Bytes of lines that are parsed at a time; parsing takes some 20 times as much memory.
MAX_LINE = 64 << 20  # Bytes; a longer line is refused, so that a broken file cannot fill the memory.
BOM = b"\xef\xbb\xbf"
DAMAGE = (
    EOFError,
    OSError,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    RuntimeError,  # An encrypted member, an unknown compression.
)


@dataclass(frozen=True, slots=True)
class Block:
    r"""Whole lines of a file.

    Attributes:
        data: ends with `\n`; a byte order mark is cut off and CRLF is LF.
        source: the file, for messages; a member of an archive as `archive:member`.
        line: number of the first line.
    """

    data: bytes
    source: str
    line: int


@dataclass(frozen=True, slots=True)
class Member:
    """One open file. Its stream ends when the next member is asked for.

    Attributes:
        name: path inside the archive or folder, with forward slashes; of a single file its name without
            the ending of its compression.
        source: for messages.
        path: where the plain file lies; None where it is compressed or in an archive.
        size: bytes that must come; None where that is not known beforehand.
    """

    name: str
    source: str
    stream: IO[bytes]
    path: Path | None = None
    size: int | None = None

    def blocks(self, size: int = BLOCK) -> Iterator[Block]:
        """The file's lines in blocks of about `size` bytes.

        Raises:
            DataError: a damaged archive, or a line of more than `MAX_LINE` bytes.
        """
        rest, line, read = b"", 1, 0
        with _damage(self.source):
            while chunk := self.stream.read(size):
                read += len(chunk)
                end = chunk.rfind(b"\n") + 1
                if not end:
                    rest += chunk
                    if len(rest) > MAX_LINE:
                        raise DataError(
                            f"{self.source}, line {line}: longer than {MAX_LINE} bytes; is this a file of "
                            "this format?"
                        )
                    continue
                data, rest = rest + chunk[:end], chunk[end:]
                yield Block(_tidy(data, line), self.source, line)
                line += data.count(b"\n")
            if self.size not in (None, read):  # tarfile ends a file that is cut short without a word.
                raise EOFError(f"{read} of {self.size} bytes")
        if rest := _tidy(rest + b"\n", line).strip(b"\n"):
            yield Block(rest + b"\n", self.source, line)


def _tidy(data: bytes, line: int) -> bytes:
    """Without a byte order mark, and with the same line ends everywhere."""
    return (data.removeprefix(BOM) if line == 1 else data).replace(b"\r\n", b"\n")


def walk(path: Path) -> Iterator[Member]:
    """Every file of a folder or archive, or the one file that `path` is, in stored order (a folder: sorted).

    Archives that lie in a folder are looked into, too.

    Raises:
        DataError: nothing there, or a damaged archive.
    """
    if path.is_dir():
        for file in sorted(entry for entry in path.rglob("*") if entry.is_file()):
            folder = file.parent.relative_to(path)
            for member in walk(file):
                yield replace(member, name=(folder / member.name).as_posix())
        return
    if not path.is_file():
        raise DataError(f"{path}: no such file or folder")
    with _damage(str(path)):
        if _magic(path).startswith(b"PK\x03\x04"):
            yield from _zipped(path)
            return
        with _decompressed(path) as (stream, compressed):
            if _is_tar(path):
                yield from _tarred(path, stream)
                return
            name = path.stem if compressed else path.name
            yield Member(name, str(path), stream, None if compressed else path)


def base_name(name: str) -> str:
    """The last part of a member's name."""
    return PurePosixPath(name).name


@contextmanager
def _damage(source: str) -> Iterator[None]:
    """What decompressors raise becomes one error that names the file."""
    try:
        yield
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None and not isinstance(error, gzip.BadGzipFile):
            raise  # The system's refusal, not the archive's contents.
        raise DataError(
            f"{source}: the file is damaged or cut short ({type(error).__name__}: {error}); fetch it again"
        ) from error


def _magic(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(8)


@contextmanager
def _decompressed(path: Path) -> Iterator[tuple[IO[bytes], bool]]:
    """The file's plain bytes, and whether they were compressed."""
    magic = _magic(path)
    opener: Any = None
    if magic.startswith(b"\x1f\x8b"):
        opener = gzip.open
    elif magic.startswith(b"BZh"):
        opener = bz2.open
    elif magic.startswith(b"\xfd7zXZ\0"):
        opener = lzma.open
    with opener(path, "rb") if opener else path.open("rb") as stream:
        yield stream, opener is not None


def _is_tar(path: Path) -> bool:
    with _decompressed(path) as (stream, _):
        return stream.read(262)[257:262] == b"ustar"


def _tarred(path: Path, stream: IO[bytes]) -> Iterator[Member]:
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for entry in archive:
            if entry.isfile() and (file := archive.extractfile(entry)) is not None:
                yield Member(entry.name, f"{path}:{entry.name}", file, size=entry.size)


def _zipped(path: Path) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                with archive.open(entry) as file:
                    yield Member(entry.filename, f"{path}:{entry.filename}", file)
