"""What the drawer of a visual cue needs to know of each country, as plain values for `cues.json`.

Per country: the outline in pixels of its picture, where each neighbour lies on it, and the colours of
its flag, largest first. Pictures are `SIZE` pixels square.
"""

from __future__ import annotations

import json
from pathlib import Path

from vispath_lit.data.atlas.countries import countries
from vispath_lit.data.atlas.flags import Patch, flag_palettes
from vispath_lit.data.atlas.geometry import SIZE, Border, Outline
from vispath_lit.data.atlas.maps import country_borders, country_outlines


def write_cues(path: Path) -> None:
    """Writes the cues of all countries, in the order of their codes."""
    text = json.dumps({"size": SIZE, "countries": country_cues()}, ensure_ascii=False, indent=0)
    path.write_text(text + "\n", encoding="utf-8")


def country_cues() -> dict[str, dict[str, object]]:
    """By entity id: `outline` (rings of pixels), `centroid`, `neighbours`, `palette`."""
    outlines, borders, palettes = country_outlines(), country_borders(), flag_palettes()
    return {
        f"country:{code}": {
            "label": country.label,
            **_drawn(outlines.get(code)),
            "neighbours": [_neighbour(border) for border in borders[code]],
            "palette": [_patch(patch) for patch in palettes.get(code, ())],
        }
        for code, country in countries().items()
    }


def _drawn(outline: Outline | None) -> dict[str, object]:
    if outline is None:
        return {"outline": [], "centroid": None}
    rings = [ring.round(2).tolist() for ring in outline.rings]
    return {"outline": rings, "centroid": [round(value, 2) for value in outline.centroid]}


def _neighbour(border: Border) -> dict[str, object]:
    return {
        "id": f"country:{border.neighbour}",
        "sector": border.sector,
        "bearing": round(border.bearing, 2),
        "edge_distance": round(border.edge_distance, 2),
        "origin": [round(value, 2) for value in border.origin],
        "anchor": [round(value, 2) for value in border.anchor],
        "shared": border.shared,
        "arc": round(border.arc, 2),
    }


def _patch(patch: Patch) -> dict[str, object]:
    return {"name": patch.name, "rgb": list(patch.rgb), "share": patch.share}
