"""The parser and the validation as a fuzz target: one line, at most one answer, no exception.

As a program it runs under atheris, if that is installed, and takes the options of libFuzzer:
`python -m tests.support.fuzz_target -runs=…`.
"""

import json
import sys
import tempfile
from pathlib import Path
from random import Random

from colibri.core.errors import Invalid
from colibri.server.answers import Answers, Request
from colibri.server.lines import Malformed, parse
from colibri.server.wire import Wire
from colibri.tools import schema
from colibri.tools.catalogue import CATALOGUE
from tests.support.hostile_lines import dump, request

VALIDATORS = {tool.name: schema.Validator(tool.input) for tool in CATALOGUE}


class Target:
    """A wire with a service that only validates arguments."""

    instructions = "-"

    def __init__(self) -> None:
        self._sent: list[bytes] = []
        self._answers = Answers("1")
        self._wire = Wire(self, self._answers, self._sent.append)

    def take(self, line: bytes) -> None:
        """Feed a line without its line break; raises whatever would crash the real server."""
        self._sent.clear()
        self._wire.feed(line + b"\n")
        assert len(self._sent) <= 1, self._sent
        for sent in self._sent:
            answer = json.loads(sent)
            assert ("result" in answer) != ("error" in answer) or "method" in answer, answer
        self._wire.close_subscriptions()
        try:
            value = parse(line)
        except Malformed:
            return
        assert value == json.loads(line)  # the accepted value is the one that was sent

    # The service that the wire needs.

    def tool_list(self) -> bytes:
        return b"[]"

    def call(self, request: Request, name: str, arguments: object) -> None:
        try:
            validate = VALIDATORS.get(name)
            members = {} if validate is None else schema.recordable(validate(arguments))
            self._answers.answer(request, [], json.dumps({"x": members}).encode()[1:-1])
        except Invalid as refusal:
            self._answers.fail(request, -1, str(refusal.issues))

    def cancel(self, request: Request) -> bool:
        return False


def main() -> None:
    """Fuzz until libFuzzer stops."""
    import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

    atheris.instrument_all()
    target, random = Target(), Random(0)
    with tempfile.TemporaryDirectory() as corpus:
        for number in range(200):
            Path(corpus, str(number)).write_bytes(dump(request(random, number), random))
        options = [*sys.argv, corpus]
        atheris.Setup(options, lambda data: target.take(data.replace(b"\n", b" ")))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
