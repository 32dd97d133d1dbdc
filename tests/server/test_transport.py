"""server/transport.py: streams over pipes, and what may write to the client."""

import contextlib
import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from colibri.server.transport import Stream
from tests.support.client import execute_raw
from tests.support.linked import Peer, linked
from tests.support.noisy_server import NOISE

PATIENCE = 30.0
MIB = 1024 * 1024


@pytest.fixture(params=["refusing writes", "small writes"])
def link(request: pytest.FixtureRequest) -> Iterator[tuple[Stream, Peer]]:
    """Once as on Linux, once as on systems without non-blocking writes."""
    stream, peer = linked()
    stream._can_refuse = stream._can_refuse and request.param == "refusing writes"
    stream.start()
    yield stream, peer
    with contextlib.suppress(OSError):
        peer.close()  # first, so that even a blocked sender is released
    stream.close()


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def joined(thread: threading.Thread) -> bool:
    thread.join(PATIENCE)
    return not thread.is_alive()


def drain(stream: Stream) -> None:
    """Run the main loop's part until the peer has read everything."""
    while stream.unsent:
        stream.receive(PATIENCE, reading=False)


def test_bytes_go_both_ways(link: tuple[Stream, Peer]) -> None:
    stream, peer = link
    peer.send(b"ask\n")
    assert stream.receive(PATIENCE, reading=True) == b"ask\n"
    stream.send(b"answer\n")
    assert peer.receive() == b"answer"
    assert stream.unsent == 0


def test_an_unread_send_does_not_block_its_sender(link: tuple[Stream, Peer]) -> None:
    """Specification 3.12: until 32 MiB are unread a client that does not read blocks nothing."""
    stream, peer = link
    line = b"x" * (8 * MIB) + b"\n"
    assert joined(in_thread(lambda: stream.send(line)))
    assert len(line) - 2 * MIB < stream.unsent < len(line)
    got: list[bytes] = []
    reader = in_thread(lambda: got.append(peer.receive()))
    drain(stream)
    assert joined(reader)
    assert got == [line[:-1]]


def test_unsent_is_what_was_sent_less_what_the_peer_has_room_for(
    link: tuple[Stream, Peer],
) -> None:
    """Specification 3.12: the bound on unread answers counts bytes."""
    stream, _ = link
    while not stream.unsent:
        stream.send(b"y" * 999 + b"\n")
    before = stream.unsent
    stream.send(b"z" * 4999 + b"\n")
    assert stream.unsent == before + 5000


def test_the_descriptor_of_the_client_stays_blocking(link: tuple[Stream, Peer]) -> None:
    """transport.py: non-blocking would change it for every process that shares it."""
    stream, _ = link
    stream.send(b"x" * MIB)
    assert os.get_blocking(stream.out_fd)


def test_a_terminal_gets_its_lines_too() -> None:
    """transport.py: not every file type can refuse a write instead of blocking."""
    leader, follower = os.openpty()
    stream = Stream(0, follower)
    stream.start()
    stream.send(b"one\n")
    stream.send(b"two\n")
    assert (stream.unsent, stream.broken) == (0, False)
    got = b""
    while got.count(b"\n") < 2:  # a terminal may hand over one line at a time
        got += os.read(leader, 100)
    assert got == b"one\r\ntwo\r\n"
    stream.close()
    os.close(leader)


def test_lines_of_many_senders_stay_whole_and_in_their_order(link: tuple[Stream, Peer]) -> None:
    """Specification 2.19: answers are whole lines."""
    stream, peer = link
    senders, each = 8, 60
    got: list[bytes] = []

    def read() -> None:
        got.extend(peer.receive() for _ in range(senders * each))

    def send(sender: int) -> None:
        for number in range(each):
            body = b"%d" % sender * (1 + number * 331 % 20_000)
            stream.send(b"%d %d %b\n" % (sender, number, body))

    reader = in_thread(read)
    threads = [in_thread(lambda sender=sender: send(sender)) for sender in range(senders)]  # type: ignore[misc] # mypy cannot infer a lambda with a default
    deadline = time.monotonic() + PATIENCE
    while reader.is_alive() and time.monotonic() < deadline:
        stream.receive(0.05, reading=False)
    assert joined(reader)
    assert all(joined(thread) for thread in threads)
    seen: dict[bytes, list[int]] = {}
    for line in got:
        sender, number, body = line.split(b" ")
        seen.setdefault(sender, []).append(int(number))
        assert body == sender * (1 + int(number) * 331 % 20_000)
    assert seen == {b"%d" % sender: list(range(each)) for sender in range(senders)}


def test_the_end_of_input_comes_after_the_last_bytes(link: tuple[Stream, Peer]) -> None:
    """Specification 2.22: end of input is a clean shutdown after every line that was read."""
    stream, peer = link
    peer.send(b"last")
    peer.hang_up()
    assert stream.receive(PATIENCE, reading=True) == b"last"
    assert stream.receive(PATIENCE, reading=True) == b""
    stream.send(b"still answered\n")
    assert peer.receive() == b"still answered"


def test_a_client_that_is_gone_counts_as_the_end_of_input(link: tuple[Stream, Peer]) -> None:
    """Specification 2.21: EPIPE counts as end of input; here stdin stays open."""
    stream, peer = link
    peer._reader.close()
    assert stream.receive(0, reading=True) is None
    stream.send(b"to nobody\n")
    assert stream.receive(PATIENCE, reading=True) == b""
    assert stream.unsent == 0


def test_a_client_that_leaves_with_unread_answers_ends_the_wait(link: tuple[Stream, Peer]) -> None:
    """Specification 2.21: EPIPE counts as end of input, also for what was queued."""
    stream, peer = link
    stream.send(b"x" * MIB)
    assert stream.unsent > 0
    got: list[bytes] = []

    def until_ended() -> None:
        while (chunk := stream.receive(PATIENCE, reading=True)) is None:
            continue
        got.append(chunk)

    waiting = in_thread(until_ended)
    peer._reader.close()
    assert joined(waiting)
    assert (got, stream.unsent) == ([b""], 0)


def test_a_send_to_a_client_that_is_gone_is_silent(link: tuple[Stream, Peer]) -> None:
    stream, peer = link
    peer._reader.close()
    for _ in range(3):
        stream.send(b"x" * MIB)
    assert stream.unsent == 0


def test_with_the_client_gone_a_wait_without_reading_still_waits(
    link: tuple[Stream, Peer],
) -> None:
    """Specification 13.5: a drain that returned at once would spin for up to 30 s."""
    stream, peer = link
    peer._reader.close()
    stream.send(b"to nobody\n")
    stream.receive(0, reading=False)
    begin = time.monotonic()
    stream.receive(0.1, reading=False)
    assert time.monotonic() - begin >= 0.1


def test_a_wait_ends_when_another_thread_wakes_it(link: tuple[Stream, Peer]) -> None:
    """Specification 3.13: signals and lanes wake the main thread through a pipe."""
    stream, _ = link
    entered = threading.Event()
    got: list[bytes | None] = []

    def wait() -> None:
        entered.set()
        got.append(stream.receive(None, reading=True))

    waiting = in_thread(wait)
    assert entered.wait(PATIENCE)
    stream.wake()
    assert joined(waiting)
    assert got == [None]


def test_a_blocked_send_wakes_the_thread_that_waits_so_that_it_writes_the_rest(
    link: tuple[Stream, Peer],
) -> None:
    """transport.py: what the peer does not take at once is written later."""
    stream, peer = link
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            stream.receive(None, reading=True)

    serving = in_thread(serve)
    in_thread(lambda: stream.send(b"x" * MIB + b"\n"))
    got: list[bytes] = []
    assert joined(in_thread(lambda: got.append(peer.receive())))
    stop.set()
    stream.wake()
    assert joined(serving)
    assert got == [b"x" * MIB]


def test_any_number_of_wakes_blocks_no_thread(link: tuple[Stream, Peer]) -> None:
    stream, _ = link

    def wake_often() -> None:
        for _ in range(100_000):
            stream.wake()

    assert joined(in_thread(wake_often))
    assert stream.receive(PATIENCE, reading=True) is None


def test_nothing_is_read_while_reading_is_not_wanted(link: tuple[Stream, Peer]) -> None:
    """Specification 3.12: with too much unread the main thread stops reading."""
    stream, peer = link
    peer.send(b"later\n")
    assert stream.receive(0, reading=False) is None
    assert stream.receive(PATIENCE, reading=True) == b"later\n"


def test_a_closed_input_counts_as_its_end() -> None:
    stream, peer = linked()
    stream.start()
    os.close(stream.in_fd)
    assert stream.receive(PATIENCE, reading=True) == b""
    stream.in_fd = -1
    stream.close()
    peer.close()


def test_after_close_nothing_happens_and_the_standard_descriptors_stay() -> None:
    read, write = os.pipe()
    stream = Stream(0, write)
    stream.start()
    stream.close()
    stream.send(b"late\n")
    stream.wake()
    stream.close()
    with os.fdopen(read, "rb") as reader:
        assert reader.read() == b""
    os.fstat(0)


def program(body: str) -> list[str]:
    head = "import os, sys\nfrom colibri.server.transport import claim_stdout\n"
    return [sys.executable, "-c", head + body]


@pytest.mark.parametrize("statement", NOISE.values(), ids=NOISE.keys())
def test_what_is_printed_goes_to_stderr_and_never_to_the_wire(statement: str) -> None:
    """Specification 2.20: no print, warning or child process can reach the wire."""
    body = f"private = claim_stdout()\nos.write(private, b'wire\\n')\n{statement}\n"
    done = execute_raw(program(body))
    assert done.stdout == b"wire\n"
    assert b"noise" in done.stderr


def test_a_child_process_does_not_get_the_private_descriptor() -> None:
    """Specification 2.20: a child that outlives us would hold the wire open."""
    body = "private = claim_stdout()\nprint(private, os.get_inheritable(private))"
    done = execute_raw(program(body), check=True)
    private, inheritable = done.stderr.split()
    assert int(private) > 2
    assert inheritable == b"False"


CLOSED = [[fd for fd in (0, 1, 2) if mask >> fd & 1] for mask in range(1, 8)]


@pytest.mark.parametrize("closed", CLOSED, ids=str)
def test_a_closed_standard_descriptor_is_not_reused_for_a_later_file(
    tmp_path: Path, closed: list[int]
) -> None:
    """transport.py: they become /dev/null, or the database could be taken for stdout."""
    report = tmp_path / "report"
    body = (
        "private = claim_stdout()\n"
        f"file = os.open({str(report)!r}, os.O_WRONLY | os.O_CREAT)\n"
        "kinds = [os.fstat(fd).st_rdev == os.stat('/dev/null').st_rdev for fd in (0, 1, 2)]\n"
        "os.write(file, repr((private > 2, file > 2, kinds)).encode())\n"
        "os.write(private, b'wire')\n"
    )
    redirections = "".join(f" {fd}{'<' if fd == 0 else '>'}&-" for fd in closed)
    done = execute_raw(["sh", "-c", f'exec "$@"{redirections}', "sh", *program(body)], check=True)
    kinds = [0 in closed, 2 in closed, 2 in closed]
    assert report.read_text() == repr((True, True, kinds))
    assert done.stdout == (b"" if 1 in closed else b"wire")


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="only Linux can widen a pipe")
@pytest.mark.parametrize(
    ("before", "after"), [(65536, 524288), (524288, 524288), (1 << 20, 1 << 20)]
)
def test_a_pipe_is_widened_to_hold_a_long_answer_and_never_narrowed(
    before: int, after: int
) -> None:
    """Decision 006."""
    stream, peer = linked()
    try:
        fcntl.fcntl(stream.out_fd, fcntl.F_SETPIPE_SZ, before)
        stream.start()
        assert fcntl.fcntl(stream.out_fd, fcntl.F_GETPIPE_SZ) == after
        stream.send(b"x" * (after - 1) + b"\n")
        assert stream.unsent == 0
    finally:
        stream.close()
        peer.close()
