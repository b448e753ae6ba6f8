"""What converters leave behind beside the question files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REPORT = "report.json"


def write_report(folder: Path, report: dict[str, Any]) -> dict[str, Any]:
    """Writes `report.json`, last of all, and hands it on."""
    partial = folder / f".{REPORT}.partial"
    partial.write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf8")
    partial.replace(folder / REPORT)
    return report
