"""Transformer layers over a few positions, with keys that many queries share.

Attention has no dropout of its own: with it, torch's fast path is lost on processors.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class Attention(nn.Module):
    """Multi-head attention to keys and values that were projected before."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def project(self, memory: Tensor) -> Tensor:
        """Keys and values `[n, L, 2 * width]` of a memory `[n, L, width]`."""
        projected: Tensor = self.key_value(memory)
        return projected

    def forward(self, x: Tensor, key_value: Tensor, mask: Tensor | None = None) -> Tensor:
        """`[n, T, width]` queries over `[n, L, 2 * width]`; `mask` is `[n, L]` bool, True is something."""
        n, steps, width = x.shape
        query = self.query(x).view(n, steps, self.heads, -1).transpose(1, 2)
        key, value = key_value.view(n, key_value.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        where = None if mask is None else mask[:, None, None, :]
        mixed = F.scaled_dot_product_attention(query, key, value, where)
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(n, steps, width))
        return out


class FeedForward(nn.Sequential):
    """Two linear layers, twice as wide between."""

    def __init__(self, width: int) -> None:
        super().__init__(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, normalised before each."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.feed_forward = FeedForward(width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """`[n, L, width]` to the same; `mask` is `[n, L]` bool, True where there is something."""
        normal = self.norms[0](x)
        x = x + self.drop(self.attention(normal, self.attention.project(normal), mask))
        out: Tensor = x + self.drop(self.feed_forward(self.norms[1](x)))
        return out


class DecoderLayer(nn.Module):
    """Self-attention over own positions, attention to a memory that a few rows share, feed-forward."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.own = Attention(width, heads)
        self.shared = Attention(width, heads)
        self.feed_forward = FeedForward(width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.drop = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, key_value: Tensor, mask: Tensor, slot: Tensor, slots: int, last: bool = False
    ) -> Tensor:
        """One layer.

        Args:
            x: `[P, T, width]`.
            key_value: `[S, L, 2 * width]`, the memory as `shared.project` gives it.
            mask: `[S, L]` bool, True is something.
            slot: `[P]` long, each row's place among the `S * slots`: its memory times `slots`, plus its
                number among the rows of that memory. Keys are never copied for each row.
            slots: most rows of one memory.
            last: give the last position alone, `[P, 1, width]`.
        """
        normal = self.norms[0](x)
        own = self.own.project(normal)
        if last:
            x, normal = x[:, -1:], normal[:, -1:]
        x = x + self.drop(self.own(normal, own))
        rows = self.norms[1](x)
        steps, width = rows.shape[1:]
        placed = rows.new_zeros(len(mask) * slots, steps, width).index_copy(0, slot, rows)
        read = self.shared(placed.view(len(mask), slots * steps, width), key_value, mask)
        x = x + self.drop(read.view(-1, steps, width).index_select(0, slot))
        out: Tensor = x + self.drop(self.feed_forward(self.norms[2](x)))
        return out
