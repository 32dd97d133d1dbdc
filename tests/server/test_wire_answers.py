"""server/wire.py: open requests: one answer each, cancellation, subscriptions."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from colibri.server.wire import MAX_SUBSCRIPTIONS
from tests.support.wire_with_notes import (
    INFO,
    SERVER_INFO,
    SUBSCRIPTION,
    Connection,
    acknowledged,
    listen,
    old,
)


@pytest.fixture
def connection() -> Connection:
    return Connection()


def test_a_subscription_is_acknowledged_first_and_with_an_empty_subset(
    connection: Connection,
) -> None:
    """Specification 2.8: acknowledged with an empty subset; no answer while it is open."""
    assert connection.ask(listen("s")) == acknowledged("s")


def test_a_cancelled_subscription_gets_no_answer_and_frees_its_id(connection: Connection) -> None:
    """Specification 2.8: a cancelled subscription gets no answer."""
    connection.say(listen("s"))
    connection.cancel("s")
    assert connection.sent == [acknowledged("s")]
    assert connection.ask(listen("s")) == acknowledged("s")
    connection.wire.close_subscriptions()
    assert [message.get("id") for message in connection.sent] == [None, None, "s"]


def test_a_subscription_open_at_shutdown_gets_its_result_once(connection: Connection) -> None:
    """Specification 2.8: one open at shutdown gets its result."""
    connection.say(listen("s"))
    connection.wire.close_subscriptions()
    connection.wire.close_subscriptions()
    meta = {SUBSCRIPTION: "s", SERVER_INFO: INFO}
    result = {"resultType": "complete", "_meta": meta}
    assert connection.sent[1:] == [{"jsonrpc": "2.0", "id": "s", "result": result}]


def test_a_subscription_that_comes_during_the_shutdown_gets_its_result_too(
    connection: Connection,
) -> None:
    """Specification 2.8: exactly one answer; input is still read while draining."""
    connection.wire.close_subscriptions()
    connection.say(listen("s"))
    assert connection.sent[0] == acknowledged("s")
    assert [message.get("id") for message in connection.sent[1:]] == ["s"]


def test_sixteen_subscriptions_may_be_open_and_no_more(connection: Connection) -> None:
    """Specification 2.8: -32010, and cancelling one makes room."""
    for number in range(MAX_SUBSCRIPTIONS):
        assert connection.ask(listen(number)) == acknowledged(number)
    assert connection.ask(listen("one more"))["error"]["code"] == -32010
    connection.cancel(3)
    assert connection.ask(listen("one more")) == acknowledged("one more")


def test_an_id_that_is_still_in_flight_is_refused(connection: Connection) -> None:
    """Specification 2.13: a request whose id is still in flight: -32600; the first one goes on."""
    connection.say(old("tools/call", {"name": "one"}, "c"))
    connection.say(listen("s"))
    for message in (old("ping", id="c"), listen("s"), old("tools/call", {"name": "one"}, "s")):
        answer = connection.ask(message)
        assert (answer["id"], answer["error"]["code"]) == (message["id"], -32600)
    assert len(connection.service.calls) == 1
    connection.answer(connection.service.calls[0][0], {}, b'"n":1')
    assert connection.sent[-1] == {"jsonrpc": "2.0", "id": "c", "result": {"n": 1}}


def test_an_id_may_be_used_again_once_it_is_answered(connection: Connection) -> None:
    assert connection.ask(old("ping", id=5))["result"] == {}
    assert connection.ask(old("ping", id=5))["result"] == {}


@pytest.mark.parametrize(("first", "second"), [(1, "1"), ("", 0), ("a", "A")])
def test_ids_that_look_alike_are_different(
    connection: Connection, first: object, second: object
) -> None:
    connection.say(old("tools/call", {"name": "one"}, first))
    assert connection.ask(old("ping", id=second)) == {"jsonrpc": "2.0", "id": second, "result": {}}


def test_a_waiting_call_that_is_cancelled_is_dropped_and_never_answered(
    connection: Connection,
) -> None:
    """Specification 2.15: dropped and not answered."""
    connection.say(old("tools/call", {"name": "one"}, "c"))
    connection.cancel("c")
    request = connection.service.calls[0][0]
    connection.answer(request, {}, b'"n":1')
    connection.fail(request, -32602, "no")
    assert (connection.service.cancelled, connection.sent) == (["c"], [])


def test_a_running_call_that_is_cancelled_finishes_and_answers(connection: Connection) -> None:
    """Specification 2.15: a running one finishes and answers."""
    connection.service.waiting = False
    connection.say(old("tools/call", {"name": "one"}, "c"))
    connection.cancel("c")
    connection.answer(connection.service.calls[0][0], {}, b'"n":1')
    assert connection.sent == [{"jsonrpc": "2.0", "id": "c", "result": {"n": 1}}]


def test_a_second_answer_for_the_same_request_is_not_sent(connection: Connection) -> None:
    """Specification 2.14: exactly one answer."""
    connection.say(old("tools/call", {"name": "one"}, "c"))
    request = connection.service.calls[0][0]
    connection.fail(request, -32602, "no")
    connection.answer(request, {}, b'"n":1')
    connection.fail(request, -32602, "no")
    error = {"code": -32602, "message": "no"}
    assert connection.sent == [{"jsonrpc": "2.0", "id": "c", "error": error}]


def test_a_late_answer_for_a_dropped_call_leaves_the_next_use_of_its_id_alone(
    connection: Connection,
) -> None:
    """Specification 2.14: exactly one answer, also for the request that has the id now."""
    connection.say(old("tools/call", {"name": "one"}, "c"))
    connection.cancel("c")
    connection.say(old("tools/call", {"name": "two"}, "c"))
    dropped, current = (call[0] for call in connection.service.calls)
    connection.answer(dropped, {}, b'"n":1')
    connection.answer(current, {}, b'"n":2')
    assert [message["result"] for message in connection.sent] == [{"n": 2}]


def test_only_one_of_many_threads_answers_a_request(connection: Connection) -> None:
    """Specification 2.14: exactly one answer, from any thread."""
    for number in range(200):
        connection.say(old("tools/call", {"name": "one"}, number))
    requests = [call[0] for call in connection.service.calls]

    def answer_all(_: int) -> None:
        for request in requests:
            connection.answer(request, {}, b'"n":1')

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(answer_all, range(4)))
    assert sorted(message["id"] for message in connection.sent) == list(range(200))
