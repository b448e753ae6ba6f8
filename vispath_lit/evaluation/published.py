"""What the VisPath paper reports, for the tables that show it beside own figures.

Table II as printed; of Tables V to VII the figures that the paper's text names, and those that follow from
them: the text of Table VI tells two rows by their drops. All SBERT@0.3 and grounding figures are percentages
on the paper's data sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# data set -> the hops of its columns, before the average
HOPS: Mapping[str, Sequence[str]] = {
    "vispath_bench": ("2", "3", "4"),
    "reasonvqa": ("2", "3"),
    "mmhops": ("2", "3", "4"),
    "e_vqa": ("2",),
}
_ALL = ("vispath_bench", "reasonvqa", "mmhops", "e_vqa")
# method -> the columns of the four data sets in their order; E-VQA has no average of its own
_TABLE_II: Mapping[str, str] = {
    "EmbedKGQA": "16.2 11.1 4.7 11.4 | 28.6 15.9 18.3 | 9.8 6.9 7.4 8.3 | 5.9",
    "Qwen2.5-VL-32B": "58.6 49.5 46.0 51.3 | 49.2 51.4 51.0 | 70.6 67.8 70.2 69.3 | 61.7",
    "Qwen2.5-VL-72B": "62.0 52.6 49.7 54.5 | 46.6 57.1 55.1 | 75.4 72.4 75.0 74.0 | 65.0",
    "GLM-4.6V": "51.8 50.0 48.3 50.2 | 52.0 60.5 58.9 | 80.3 79.6 77.9 79.7 | 66.4",
    "GPT-4o": "57.6 50.1 47.0 51.5 | 63.1 52.8 54.9 | 79.1 74.3 77.5 76.8 | 62.8",
    "GPT-5.4": "65.4 56.8 52.7 58.3 | 69.6 60.7 62.4 | 81.7 78.9 76.0 79.9 | 66.0",
    "MindMap": "68.4 50.6 49.7 54.9 | 51.2 47.6 48.3 | 52.4 52.4 46.1 51.6 | 41.0",
    "ToG (GPT-4o)": "34.0 16.7 13.7 20.6 | 32.4 22.1 24.0 | 27.6 22.7 17.2 24.3 | 11.4",
    "PoG (GPT-4o)": "55.2 36.7 25.3 39.6 | 31.6 32.1 32.0 | 34.1 26.0 16.7 29.4 | 17.1",
    "OmniSearch": "38.0 36.6 37.0 37.0 | 37.9 43.1 42.1 | 50.7 38.6 28.4 43.1 | 37.4",
    "MMSearch-R1-7B": "44.2 38.1 35.0 39.2 | 45.5 51.1 50.0 | 60.9 48.0 43.1 53.3 | 32.3",
    "VisPath (GPT-4o)": "74.0 62.4 57.0 64.5 | 81.5 64.8 68.0 | 86.5 83.1 79.8 84.3 | 70.4",
}
# Starts on ReasonVQA: strict and soft; the text leaves out one soft figure.
GROUNDING: Mapping[str, tuple[float, float | None]] = {
    "Top-1 selection (Qwen2.5-VL-72B)": (24.1, 25.1),
    "VisPath (Qwen2.5-VL-72B)": (42.7, 48.3),
    "VisPath (GPT-4o)": (56.2, None),
    "VisPath (GLM-4.6V)": (57.2, 64.8),
}
# SBERT@0.3 on VisPath-Bench by hops and on average. The full row is Table II's. The text names the averages
# 64.5 and 56.2, the drops 5.5 and 6.0 from 64.5, and of the last row each hop (2 stays as it is), no average.
ABLATION: Mapping[str, Mapping[str, float]] = {
    "full system": {"2": 74.0, "3": 62.4, "4": 57.0, "all": 64.5},
    "without graph-aware validation": {"all": 56.2},
    "without visual intent": {"all": 59.0},
    "without chain pruning": {"all": 58.5},
    "without evidence checking": {"2": 74.0, "3": 61.6, "4": 58.0},
}
# A question on VisPath-Bench: LLM calls, VLM calls, text tokens.
COST: Mapping[str, tuple[float, float, float]] = {"VisPath (GPT-4o-mini)": (5.8, 5.2, 3600)}


def main_rows(data: str) -> dict[str, dict[str, float]]:
    """Table II on one of its data sets: method to {hops or `all`: SBERT@0.3}; empty for any other."""
    if data not in HOPS:
        return {}
    columns = [*HOPS[data], "all"]
    found = {}
    for method, line in _TABLE_II.items():
        values = [float(value) for value in line.split(" | ")[_ALL.index(data)].split()]
        if len(values) < len(columns):  # one number of hops is the average
            values = [*values, values[-1]]
        found[method] = dict(zip(columns, values, strict=True))
    return found


def known(data: str) -> str:
    """The paper's data set of a name as users write it; the name itself where it has none."""
    plain = data.lower().replace("-", "_")
    return "e_vqa" if plain in ("evqa", "encyclopedic_vqa") else plain
