from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vispath_lit.errors import ConfigError
from vispath_lit.models.analyzers.fixed import PatternAnalyzer, depth_around
from vispath_lit.types import Query

ANALYZER = PatternAnalyzer()


@pytest.mark.parametrize(
    ("question", "hops"),
    [
        ("What money do people pay with in the country whose flag is shown?", 1),
        ("What is the capital of the country shown in the picture?", 1),
        ("Where was the architect of the building shown in the image born?", 2),
        ("What is the capital of the country where the mountain shown stands?", 2),
        ("Name the author of the novel on which the film pictured is based.", 2),
        ("What is the official language of the country that borders the country whose outline is drawn?", 2),
        ("In which city is the headquarters of the manufacturer of the phone in the picture?", 3),
        ("The photo shows a bridge. Who designed that bridge?", 1),
        ("The photo shows a bridge. Take the river that flows under that bridge. Where does it begin?", 2),
        ("Which wine comes from the village across the border of the town marked on the map?", 2),
        ("what is the ann 's spouse 's father ?", 2),
        ("what is the place of birth of ann 's mother ?", 2),
        ("the sex of mother of ann ?", 2),
        ("what is the name of the child of ann 's parents ?", 2),
    ],
)
def test_the_depth_counts_the_noun_phrases_of_the_chain(question: str, hops: int) -> None:
    assert ANALYZER.read(question).hops == hops


@pytest.mark.parametrize(
    ("question", "expression", "head"),
    [
        (
            "What is the capital of the country whose flag is shown?",
            "the country whose flag is shown",
            "country",
        ),
        ("Who designed this bridge?", "this bridge", "bridge"),
        ("Where was the Architect of the Arch seen here born?", "the Arch seen here", "arch"),
        ("Which river crosses the city marked on the map?", "the city marked on the map", "city"),
        ("Who leads the nation that flies this flag?", "the nation that flies this flag", "nation"),
        ("The map marks a city. Who leads the country of that city?", "The map marks a city.", "city"),
        ("who is ann 's mother ?", "", ""),
    ],
)  # fmt: skip
def test_the_expression_refers_to_the_image(question: str, expression: str, head: str) -> None:
    analysis = ANALYZER.read(question)
    assert (analysis.expression, analysis.head) == (expression, head)


def test_the_sketch_goes_from_the_image_outwards() -> None:
    question = "Where was the architect of the building shown in the image born?"
    assert ANALYZER.read(question).sketch == "architect, born"
    assert PatternAnalyzer(with_sketch=False).read(question).sketch == ""


@given(st.integers(1, 9), st.integers(1, 6), st.floats(0.1, 5))
def test_the_depth_distribution_peaks_at_the_bounded_count(hops: int, d_max: int, sharpness: float) -> None:
    depth = depth_around(hops, d_max, sharpness)
    assert len(depth) == d_max
    assert sum(depth) == pytest.approx(1)
    assert depth.index(max(depth)) == min(hops, d_max) - 1


@given(st.text(max_size=200))
def test_any_text_has_an_analysis(text: str) -> None:
    (analysis,) = ANALYZER.analyze([Query(text)])
    assert 1 <= analysis.hops <= 4
    assert len(analysis.depth) == 4


@given(
    st.lists(
        st.sampled_from(
            ["the", "a", "that", "of", "'s", "is", "what", ",", ".", "?", "shown", "map", "@", "x"]
        ),
        max_size=40,
    )
)
def test_any_order_of_function_words_has_an_analysis(words: list[str]) -> None:
    assert 1 <= ANALYZER.read(" ".join(words)).hops <= 4


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"analyzer\.d_max"):
        PatternAnalyzer(d_max=0)
    with pytest.raises(ConfigError, match=r"analyzer\.sharpness"):
        PatternAnalyzer(sharpness=0)
