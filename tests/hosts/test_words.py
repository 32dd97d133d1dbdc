"""What the hook says reaches the model of a real host: the brief when a session begins, and the
reminder when the agent stops, once. Specification 20.10 and 20.11."""

import json
from pathlib import Path

import pytest

from tests.hosts.drive import HOSTS, Place, Run, run
from tests.hosts.model import Turn, say
from tests.hosts.story import Played, ready

pytestmark = pytest.mark.slow

BRIEF = "Colibri keeps the account of the work in this project."
REMINDER = "Colibri: T-0001 was worked on, and no thought was recorded since."
TITLE = "Polish the brass handrail"
GETS_NO_BRIEF = ("cline",)  # it drops what a hook says
TIMES = {"claude-code": 2, "cline": 0, "opencode": 0}  # one, shown twice; they offer no way


def silent(name: str, project: Path) -> list[Turn]:
    """An agent that works on its task and stops without a word, and again after a reminder."""
    tools = HOSTS[name].tools
    return [
        [tools.colibri("audit_session_start", intent="Polish", agent_id="agent")],
        [tools.colibri("task_next_actions", claim=True)],
        [tools.write(str(project / "a.txt"), "alpha\n")],
        [say("Done.")],
        [tools.write(str(project / "b.txt"), "beta\n")],
        [say("Done.")],
    ]


def asked(ran: Run) -> list[str]:
    """What the model was sent, request by request."""
    return [request.text for request in ran.requests if not request.is_aside]


@pytest.mark.parametrize("name", HOSTS)
def test_the_brief_reaches_the_model_at_the_start_and_the_reminder_once_when_it_stops(
    name: str, tmp_path: Path
) -> None:
    place = Place.below(tmp_path)
    ready(place, name)
    place.colibri("add", TITLE)
    ran = run(name, silent(name, place.project), place)
    assert ran.code == 0, ran.err[-2000:]
    first, *_, last = asked(ran)
    gets_brief = name not in GETS_NO_BRIEF
    assert (BRIEF in first, TITLE in first) == (gets_brief, gets_brief)
    times = TIMES.get(name, 1)
    assert last.count(REMINDER) == times
    played = Played(name, place, ran)
    (begin,) = played.deeds("session.start")
    assert bool(begin["payload"]["output"]) == gets_brief, "its digest, if it was handed over"
    reminded = [one for one in played.deeds("stop") if one["payload"]["output"]]
    assert len(reminded) == min(times, 1)


def test_claude_code_gets_the_brief_again_when_it_goes_on_and_no_second_reminder(
    tmp_path: Path,
) -> None:
    """Resumed, and after the conversation was compacted."""
    name, place = "claude-code", Place.below(tmp_path)
    ready(place, name)
    place.colibri("add", TITLE)
    assert run(name, silent(name, place.project), place).code == 0
    more = [[HOSTS[name].tools.write(str(place.project / "c.txt"), "gamma\n")], [say("Done.")]]
    resumed = run(name, more, place, "--continue", prompt="Go on.")
    assert resumed.code == 0, resumed.err[-2000:]
    assert asked(resumed)[0].count(BRIEF) == 2
    assert asked(resumed)[-1].count(REMINDER) == TIMES[name]
    briefs = len(handed_over(place))
    summary: list[Turn] = [[say("<summary>All is done.</summary>")]]
    assert run(name, summary, place, "--continue", prompt="/compact").code == 0
    assert len(handed_over(place)) == briefs + 2, "resumed, and then compacted"
    after = run(name, [[say("Done.")]], place, "--continue", prompt="Go on.")
    assert asked(after)[0].count(BRIEF) > 1


def handed_over(place: Place) -> list[object]:
    """The digests of the briefs."""
    lines = map(json.loads, place.colibri("log", "--json", "--kind", "deed").splitlines())
    deeds = [one["payload"] for one in lines]
    return [one["output"] for one in deeds if one["event"] == "session.start" and one["output"]]
