"""The values that pass between the parts: questions, paths, states, predictions, chats.

Two kinds live here. Records about one question are frozen dataclasses of plain Python values.
Batches are flat tensors (`Paths`, `Frontier`, `Rows`): P partial paths, E candidate edges and
C chains of many questions lie one behind the other, with an index that says whose they are.

The one package that hands its names on: all parts speak of them, and none cares which file tells of which.
"""

from vispath_lit.types.chats import (
    Bill,
    ChatMessage,
    ChatOutcome,
    ChatReply,
    ChatRequest,
    ChatRole,
    RawAnswer,
    ReplyT,
)
from vispath_lit.types.paths import Frontier, Path, Paths
from vispath_lit.types.predictions import Cost, Evidence, HopTrace, Prediction, Provenance
from vispath_lit.types.questions import Analysis, Candidate, GoldPath, Query, Question
from vispath_lit.types.states import Intents, Rows, States

__all__ = [
    "Analysis",
    "Bill",
    "Candidate",
    "ChatMessage",
    "ChatOutcome",
    "ChatReply",
    "ChatRequest",
    "ChatRole",
    "Cost",
    "Evidence",
    "Frontier",
    "GoldPath",
    "HopTrace",
    "Intents",
    "Path",
    "Paths",
    "Prediction",
    "Provenance",
    "Query",
    "Question",
    "RawAnswer",
    "ReplyT",
    "Rows",
    "States",
]
