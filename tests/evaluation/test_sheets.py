"""A table in three forms: nothing in a cell breaks out of its form."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vispath_lit.errors import DataError
from vispath_lit.evaluation.published import HOPS, known, main_rows
from vispath_lit.evaluation.sheets import Line, Sheet, html, latex, markdown, write_sheet

SHEET = Sheet(
    "Main results",
    ("system", "2 hops", "all"),
    (Line(("a|b & c_d", "50.0", "40.1 [30.0, 50.2]")), Line(("<i>theirs</i>", "", "64.5"), published=True)),
    ("In percent: 100 % is all.",),
)


def test_markdown() -> None:
    lines = markdown(SHEET).splitlines()
    assert lines[0] == "**Main results**"
    assert lines[2:5] == [
        "| system | 2 hops | all |",
        "|---|---:|---:|",
        r"| a\|b & c_d | 50.0 | 40.1 [30.0, 50.2] |",
    ]
    assert lines[-1] == "- In percent: 100 % is all."


def test_latex() -> None:
    text = latex(SHEET)
    assert r"a|b \& c\_d & 50.0 & 40.1 [30.0, 50.2] \\" in text
    assert "\\midrule\n<i>theirs</i> &  & 64.5" in text, "published rows are set apart"
    assert r"100 \% is all" in text
    assert text.count(r"\begin") == text.count(r"\end") == 2


def test_html() -> None:
    text = html(SHEET)
    page = ElementTree.fromstring(text.replace("<!doctype html>", "").replace('<meta charset="utf-8">', ""))
    rows = page.findall(".//tbody/tr")
    assert [[cell.text or "" for cell in row] for row in rows] == [list(line.cells) for line in SHEET.lines]
    assert [row.get("class") for row in rows] == [None, "published"]
    assert "http" not in text


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=30))
def test_any_text_stays_in_its_cell(text: str) -> None:
    sheet = Sheet(text, ("a", "b"), (Line((text, "1")),), (text,))
    table = [line for line in markdown(sheet).splitlines() if line.startswith("|")]
    assert len(table) == 3
    assert table[2].replace(r"\|", "").count("|") == 3
    assert html(sheet).count("<td>") == 2
    body = latex(sheet).split(r"\midrule")[1].split(r"\bottomrule")[0]
    assert body.replace(r"\&", "").count("&") == 1


def test_a_line_has_a_cell_for_each_column() -> None:
    with pytest.raises(DataError, match="1 cells in a table of 2"):
        Sheet("t", ("a", "b"), (Line(("x",)),))


def test_three_files(tmp_path: Path) -> None:
    files = write_sheet(SHEET, tmp_path / "new", "main")
    assert [file.name for file in files] == ["main.md", "main.tex", "main.html"]
    assert files[0].read_text(encoding="utf8") == markdown(SHEET)


def test_table_ii_is_whole() -> None:
    for data, hops in HOPS.items():
        rows = main_rows(data)
        assert len(rows) == 12
        assert all(list(row) == [*hops, "all"] for row in rows.values())
        assert max(rows, key=lambda name: rows[name]["all"]) == "VisPath (GPT-4o)"
    assert main_rows("vispath_bench")["PoG (GPT-4o)"] == {"2": 55.2, "3": 36.7, "4": 25.3, "all": 39.6}
    assert main_rows("e_vqa")["GPT-5.4"] == {"2": 66.0, "all": 66.0}
    assert main_rows("atlas") == {}
    assert (known("VisPath-Bench"), known("EVQA"), known("E-VQA")) == ("vispath_bench", "e_vqa", "e_vqa")
