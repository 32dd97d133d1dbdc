"""Ten questions about one report: what a reader needs to answer them is on the page, in sight.

readers.json has the questions, to be put to people who know nothing of Colibri, and the right
answers; each `fact` is a part of the page's text that the answer rests on, before anything is
opened.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.web import readers
from tests.web.conftest import NewReader

QUESTIONS = json.loads(Path(__file__).with_name("readers.json").read_bytes())


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> readers.Asked:
    return readers.play(tmp_path_factory.mktemp("readers"))


def test_each_answer_rests_on_what_the_page_shows(asked: readers.Asked, reader: NewReader) -> None:
    ada = reader(asked.page)
    shown = " ".join(ada.page.inner_text("body").split())
    missing = {
        one["question"]: [fact for fact in one["facts"] if fact not in shown] for one in QUESTIONS
    }
    assert {question: facts for question, facts in missing.items() if facts} == {}
    assert len(QUESTIONS) == 10


def test_numbers_that_do_not_add_up_are_explained(asked: readers.Asked, reader: NewReader) -> None:
    """A record that is left out, an erased text in two records, and entries of two kinds."""
    ada = reader(asked.page)
    assert "Left out, as records of other work: record 13." in ada.text("#trust")
    assert "Record 64 is the call that carried the erased text." in ada.text("#lines")
    notes = ada.text("#not-checked")
    assert "Whether record 13 should be here: " in notes
    assert "The content of 1 record of other work: only headers are in this file." in notes
    assert "The content of 2 erased records." in notes
    assert "Whether a thought about T-0001 was recorded before the task ended." in notes
    assert ada.page.is_visible("#several-kinds")
    shown = ada.page.locator("#filters fieldset label:not([hidden]) [data-count]").all_inner_texts()
    assert sum(map(int, shown)) > int(ada.text("#shown").split()[1])


def test_the_root_that_the_agent_received_is_recognised(
    asked: readers.Asked, reader: NewReader
) -> None:
    """Specification 23.4: a right root is welcomed, and nothing after it takes that back."""
    ada = reader(asked.page)
    answer = ada.compare(asked.root)
    assert answer == (
        "This is the session that you were told about."
        " Its sealed thoughts are the ones that were sealed."
    )
    line = " ".join(ada.text("#verdict-line").split())
    assert line == answer
    trust: Any = ada.text("#trust")
    assert not [word for word in ("could", "however", "not proven", "only") if word in trust]


def test_a_root_of_another_session_is_reported_as_that(
    asked: readers.Asked, reader: NewReader
) -> None:
    ada = reader(asked.page)
    answer = ada.compare("8:" + "0" * 64)
    assert answer == "This is another session: what you pasted does not match it."
    assert ada.text("#verdict-word") == "This is another session"
    assert ada.verdict == "bad"
