"""The content hash of a request: everything that changes its answer, and nothing else."""

from __future__ import annotations

from hashlib import blake2b

from PIL.Image import Image

from vispath_lit.chat.parsing import schema_text
from vispath_lit.types import ChatRequest, ReplyT


def request_key(request: ChatRequest[ReplyT], model: str) -> str:
    """A 128-bit hash of the model's fingerprint, messages with their pixels, shape and sampling."""
    content = blake2b(digest_size=16)
    for part in (model, schema_text(request.reply), repr(request.temperature), str(request.max_tokens)):
        _add(content, part.encode())
    if request.most is not None:
        _add(content, str(request.most).encode())
    for message in request.messages:
        _add(content, message.role.encode())
        for one in message.parts:
            _add(content, one.encode("utf8", "surrogatepass") if isinstance(one, str) else _pixels(one))
    return content.hexdigest()


def _add(content: blake2b, part: bytes) -> None:
    """With its length, so that no two lists of parts are the same bytes."""
    content.update(len(part).to_bytes(8, "little"))
    content.update(part)


def _pixels(image: Image) -> bytes:
    if image.mode in ("P", "PA"):  # Their bytes are places in a palette, which decides what they show.
        image = image.convert("RGBA")
    head = f"image {image.mode} {image.size[0]} {image.size[1]} "
    return head.encode() + blake2b(image.tobytes(), digest_size=16).digest()
