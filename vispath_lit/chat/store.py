"""Answers that were paid for, and a log of what was sent, in one file: a killed run goes on from it."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

from vispath_lit.errors import DataError
from vispath_lit.types import RawAnswer

NAME = "chat.sqlite"
PATIENCE = 60  # seconds that one process waits for another's write
TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, answer_tokens INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sent (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL, step TEXT NOT NULL, run TEXT NOT NULL DEFAULT ''
);
"""
RUN_COLUMN = "ALTER TABLE sent ADD COLUMN run TEXT NOT NULL DEFAULT ''"  # of logs from before there was one


class AnswerStore:
    """What models said, by the content of the request; safe for several threads and processes.

    A request is written to the log before it goes out, and its answer as soon as it is there. Whatever kills
    the process in between, no stored answer is asked for again, and the log counts what was sent.

    Args:
        folder: where the file lies; None keeps everything in memory.

    Raises:
        DataError: a file that cannot be opened or is no such store.
    """

    def __init__(self, folder: Path | None) -> None:
        self.file = ":memory:" if folder is None else str(folder / NAME)
        self._lock = threading.Lock()
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(
                self.file, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            # A commit then waits for no disk: a killed process loses nothing, a power cut the last ones.
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.executescript(TABLES)
            self._add_run_column()
        except (OSError, sqlite3.Error) as error:
            raise DataError(
                f"{self.file} cannot be used ({error}); move it away or name another folder with cache_dir"
            ) from error

    def get(self, key: str) -> RawAnswer | None:
        """The answer to a request, None where there is none yet."""
        rows = self._run("SELECT text, prompt_tokens, answer_tokens FROM answers WHERE key = ?", key)
        return RawAnswer(*rows[0]) if rows else None

    def put(self, key: str, answer: RawAnswer) -> None:
        """Keeps an answer; of two for one request the first counts."""
        self._run(
            "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)",
            key,
            answer.text.encode("utf8", "replace").decode("utf8"),  # SQLite takes no lone surrogate.
            answer.prompt_tokens,
            answer.answer_tokens,
        )

    def sent(self, key: str, step: str, run: str = "") -> None:
        """Writes to the log that a request of a run is about to go out."""
        self._run("INSERT INTO sent (key, step, run) VALUES (?, ?, ?)", key, step, run)

    def sent_by(self, run: str) -> int:
        """How many requests of a run all of its processes have logged."""
        return int(self._run("SELECT COUNT(*) FROM sent WHERE run = ?", run)[0][0])

    def tokens_of(self, run: str) -> int:
        """The tokens of the kept answers to them, and of their prompts."""
        total = (
            "SELECT COALESCE(SUM(prompt_tokens + answer_tokens), 0) FROM answers "
            "WHERE key IN (SELECT key FROM sent WHERE run = ?)"
        )
        return int(self._run(total, run)[0][0])

    def unsent(self, key: str) -> None:
        """Takes the last such line back: nothing went out."""
        self._run("DELETE FROM sent WHERE number = (SELECT MAX(number) FROM sent WHERE key = ?)", key)

    def totals(self) -> dict[str, int]:
        """Over all processes: requests `sent`, `answers` kept, and distinct requests `open` (unanswered)."""
        queries = {
            "sent": "SELECT COUNT(*) FROM sent",
            "answers": "SELECT COUNT(*) FROM answers",
            "open": "SELECT COUNT(DISTINCT key) FROM sent WHERE key NOT IN (SELECT key FROM answers)",
        }
        return {name: int(self._run(query)[0][0]) for name, query in queries.items()}

    def _add_run_column(self) -> None:
        """Another process may be adding it at this moment."""
        if self._tells_runs():
            return
        self._base.execute("BEGIN IMMEDIATE")
        if not self._tells_runs():
            self._base.execute(RUN_COLUMN)
        self._base.execute("COMMIT")

    def _tells_runs(self) -> bool:
        return any(name == "run" for _, name, *_ in self._base.execute("PRAGMA table_info(sent)"))

    def close(self) -> None:
        """Closes the file."""
        self._base.close()

    def _run(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._base.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise DataError(
                f"{self.file} cannot be read or written ({error}); see to free space and rights, or "
                "move it away"
            ) from error
