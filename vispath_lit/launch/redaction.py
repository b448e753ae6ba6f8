"""What a config holds that a run folder must not: secrets, and where its user lives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

REDACTED = "<removed>"
_SECRET = frozenset(
    ("key", "apikey", "token", "secret", "password", "passwd", "passphrase", "credential", "authorization")
)
_SECRETS = frozenset(f"{word}s" for word in _SECRET)
# A user alone may be a token, and a password may hold an @.
_IN_URL = re.compile(r"(?<=://)[^/\s?#]*@")
_IN_QUERY = re.compile(
    r"(?i)([?&;][\w.-]*(?:key|token|secret|password|signature|credential)[\w.-]*=)[^&;#\s]+"
)
_IN_TEXT = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")


def without_secrets(value: object) -> object:
    """A copy in which what may be a secret is replaced, and the home folder is written `~`.

    A value is removed where a word of its key is key, token, secret, password or the like (`api_key`,
    `hfToken`), and so are credentials inside URLs and authorization headers; counts such as
    `max_tokens: 512` stay.
    """
    if isinstance(value, Mapping):
        return {
            str(key): REDACTED if _is_secret(str(key), item) else without_secrets(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [without_secrets(item) for item in value]
    if isinstance(value, str):
        clean = _IN_TEXT.sub(rf"\1 {REDACTED}", _IN_URL.sub(f"{REDACTED}@", value))
        return _without_home(_IN_QUERY.sub(rf"\1{REDACTED}", clean))
    if isinstance(value, Path):
        return _without_home(str(value))
    return value


def _is_secret(name: str, value: object) -> bool:
    if value is None or isinstance(value, bool):
        return False
    words = set(re.split(r"[\W_]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()))
    countable = isinstance(value, (int, float))
    return bool(words & _SECRET) or (bool(words & _SECRETS) and not countable)


def _without_home(text: str) -> str:
    home = str(Path.home())
    if len(home) < 2:
        return text
    return re.sub(rf"{re.escape(home)}(?=/|$)", "~", text)
