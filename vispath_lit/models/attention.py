"""Transformer layers over a few positions, with keys that many queries share."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class Attention(nn.Module):
    """Multi-head attention; `forward(x, memory)` projects the memory, `attend` takes it projected."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def project(self, memory: Tensor) -> Tensor:
        """Keys and values `[n, L, 2 * width]` of a memory `[n, L, width]`."""
        projected: Tensor = self.key_value(memory)
        return projected

    def attend(self, x: Tensor, key_value: Tensor, mask: Tensor) -> Tensor:
        """`[n, T, width]` queries over projected keys and values `[n, L, 2 * width]`; `mask` is `[n, L]`."""
        n, steps, width = x.shape
        query = self.query(x).view(n, steps, self.heads, -1).transpose(1, 2)
        key, value = key_value.view(n, key_value.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(
            query, key, value, mask[:, None, None, :], self.dropout if self.training else 0.0
        )
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(n, steps, width))
        return out

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        return self.attend(x, self.project(memory), mask)


class FeedForward(nn.Sequential):
    """Two linear layers, twice as wide between."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * width, width)
        )


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, normalised before each."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads, dropout)
        self.feed_forward = FeedForward(width, dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """`[n, L, width]` to the same; `mask` is `[n, L]` bool, True where there is something."""
        normal = self.norms[0](x)
        x = x + self.drop(self.attention(normal, normal, mask))
        out: Tensor = x + self.drop(self.feed_forward(self.norms[1](x)))
        return out


class DecoderLayer(nn.Module):
    """Self-attention over own positions, attention to a memory that several rows share, feed-forward."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.own = Attention(width, heads, dropout)
        self.shared = Attention(width, heads, dropout)
        self.feed_forward = FeedForward(width, dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor, row: Tensor) -> Tensor:
        """One layer.

        Args:
            x: `[P, T, width]`.
            memory: `[S, L, width]`.
            memory_mask: `[S, L]` bool.
            row: `[P]` long, the memory of each row of `x`.
        """
        normal = self.norms[0](x)
        everywhere = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        x = x + self.drop(self.own(normal, normal, everywhere))
        key_value = self.shared.project(memory)[row]
        x = x + self.drop(self.shared.attend(self.norms[1](x), key_value, memory_mask[row]))
        out: Tensor = x + self.drop(self.feed_forward(self.norms[2](x)))
        return out
