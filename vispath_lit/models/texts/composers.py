"""Small networks from the vectors of a text's parts to the vector of the whole text.

They know vectors only, no entity and no relation, so that composers distilled on one graph serve any other.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

INPUT_GAIN = 4.0  # unit vectors have entries near 1 / sqrt(d); hidden units should leave their linear range


class EdgeComposer(nn.Module):
    """SBERT(r ‖ e_t) ~ normalise(S_r r + S_t t + C gelu(A r + B t)), for label vectors r and t.

    Everything before the gelu is a sum over the parts, so that a graph's edges cost one small product each
    (`relation_part` and `tail_part` once a relation and entity, `join` once an edge).
    """

    def __init__(self, dim: int, width: int = 512) -> None:
        super().__init__()
        self.dim, self.width = dim, width
        self.relation = nn.Linear(dim, width + dim)
        self.tail = nn.Linear(dim, width + dim, bias=False)
        self.out = nn.Linear(width, dim, bias=False)
        with torch.no_grad():
            for part in (self.relation, self.tail):
                part.weight[:width].mul_(INPUT_GAIN)
                part.weight[width:].copy_(torch.eye(dim))
            self.out.weight.zero_()  # starts at the mean of the parts

    def relation_part(self, relation: Tensor) -> Tensor:
        """`[n, width + d]` of relation label vectors `[n, d]`."""
        part: Tensor = self.relation(relation)
        return part

    def tail_part(self, tail: Tensor) -> Tensor:
        """`[n, width + d]` of tail label vectors `[n, d]`."""
        part: Tensor = self.tail(tail)
        return part

    def join(self, parts: Tensor) -> Tensor:
        """`[n, d]` unit vectors of summed parts `[n, width + d]`."""
        hidden, linear = parts[:, : self.width], parts[:, self.width :]
        return F.normalize(self.out(F.gelu(hidden)) + linear, dim=1)

    def forward(self, relation: Tensor, tail: Tensor) -> Tensor:
        """`[n, d]` unit vectors of `[n, d]` relation and `[n, d]` tail label vectors."""
        return self.join(self.relation_part(relation) + self.tail_part(tail))


class ChainComposer(nn.Module):
    """SBERT(Verbalize(p)) from a recurrence over the path: one gated step an appended edge.

    h_0 = tanh(W s), v_0 = S s for the start's label vector s; then, with x = A r + B t,
    z, q = sigmoid of the gates, c = tanh(x_c + q * (U h)_c), h' = (1 - z) c + z h, v' = v + S_r r + S_t t,
    and the text's vector is normalise(C h' + v'). All matrices but C meet either a part or a parent path, so
    that the children of one parent cost a sum, a gate and one product each.
    """

    def __init__(self, dim: int, width: int = 384) -> None:
        super().__init__()
        self.dim, self.width = dim, width
        self.start = nn.Linear(dim, width + dim)
        self.relation = nn.Linear(dim, 3 * width + dim)
        self.tail = nn.Linear(dim, 3 * width + dim, bias=False)
        self.gates = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, dim, bias=False)
        with torch.no_grad():
            for part in (self.start, self.relation, self.tail):
                part.weight[:-dim].mul_(INPUT_GAIN)
                part.weight[-dim:].copy_(torch.eye(dim))
            self.out.weight.zero_()  # starts at the mean of the parts

    def begin(self, start: Tensor) -> Tensor:
        """States `[n, width + d]` (h, then v) of paths of length 0 with start label vectors `[n, d]`."""
        parts = self.start(start)
        return torch.cat([parts[:, : self.width].tanh(), parts[:, self.width :]], dim=1)

    def relation_part(self, relation: Tensor) -> Tensor:
        """`[n, 3 width + d]` of relation label vectors `[n, d]`."""
        part: Tensor = self.relation(relation)
        return part

    def tail_part(self, tail: Tensor) -> Tensor:
        """`[n, 3 width + d]` of tail label vectors `[n, d]`."""
        part: Tensor = self.tail(tail)
        return part

    def recur(self, states: Tensor) -> Tensor:
        """`[n, 3 width]`: U h of states `[n, width + d]`, needed once a parent."""
        gates: Tensor = self.gates(states[:, : self.width])
        return gates

    def step(self, states: Tensor, gates: Tensor, parts: Tensor) -> Tensor:
        """States after one more edge.

        Args:
            states: `[n, width + d]` of the parents, one an edge.
            gates: `[n, 3 width]` `recur` of the same.
            parts: `[n, 3 width + d]` summed parts of the edges.
        """
        hidden, linear = states[:, : self.width], states[:, self.width :]
        keep_u, mix_u, new_u = gates.chunk(3, dim=1)
        keep_x, mix_x, new_x = parts[:, : 3 * self.width].chunk(3, dim=1)
        keep = torch.sigmoid(keep_u + keep_x)
        new = torch.tanh(new_x + torch.sigmoid(mix_u + mix_x) * new_u)
        return torch.cat([torch.lerp(new, hidden, keep), linear + parts[:, 3 * self.width :]], dim=1)

    def read(self, states: Tensor) -> Tensor:
        """`[n, d]` unit vectors of states `[n, width + d]`."""
        hidden, linear = states[:, : self.width], states[:, self.width :]
        return F.normalize(self.out(hidden) + linear, dim=1)

    def forward(self, entities: Tensor, relations: Tensor) -> Tensor:
        """Unit vectors `[n, hops, d]` of the text after every hop.

        Args:
            entities: `[n, hops + 1, d]` label vectors.
            relations: `[n, hops, d]` label vectors.
        """
        states = self.begin(entities[:, 0])
        parts = self.relation_part(relations) + self.tail_part(entities[:, 1:])
        texts = []
        for hop in range(relations.shape[1]):
            states = self.step(states, self.recur(states), parts[:, hop])
            texts.append(self.read(states))
        return torch.stack(texts, dim=1)
