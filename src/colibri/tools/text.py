"""Rules for texts, beyond their length, that a JSON Schema cannot express well.

A field takes a rule by `Meta(extra={"text": LINE})`. Lengths count code points; nothing is
normalised.
"""

import re
import typing
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from colibri.core.ledger import HUMAN


class Rule(NamedTuple):
    """Which characters are refused, whether a text may be blank, and how it must not begin."""

    refused: re.Pattern[str]
    blank: bool
    allowed: str
    reserved: str | None = None

    def breach(self, value: str) -> str | None:
        """What is wrong with a text, or None."""
        found = self.refused.search(value)
        if found:
            character = f"U+{ord(found.group()):04X}"
            return f"holds the control character {character} at position {found.start()}"
        if self.reserved and value.strip().casefold().startswith(self.reserved):
            return f"begins with {self.reserved}, as only the name of a person does"
        return None if self.blank or value.strip() else "is blank"


# C0, DEL, C1, and bidirectional controls.
LINE = Rule(
    re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"),
    False,
    "one line of text without control or bidi characters",
)
# Prose may also have line breaks, tabs and bidirectional controls.
PROSE = Rule(
    re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"),
    True,
    "text without control characters other than line breaks and tabs",
)

# In Python, $ also matches before a final line break. In JSON Schema it does not, and not every
# reader of schemas knows lookaheads: the advertised schema leaves this one out.
NO_LINE_END = r"(?!\n)"

TaskId = Annotated[str, Meta(pattern=rf"^T-[0-9]{{4,9}}{NO_LINE_END}$", examples=["T-0001"])]
Title = Annotated[str, Meta(min_length=1, max_length=256, extra={"text": LINE})]
Name = Annotated[str, Meta(min_length=1, max_length=128, extra={"text": LINE})]
ThoughtId = Annotated[str, Meta(pattern=rf"^R-[0-9]{{1,15}}{NO_LINE_END}$", examples=["R-12"])]
SessionId = Annotated[
    str,
    Meta(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,63}}{NO_LINE_END}$", examples=["S-0123456789ab"]),
]
# A person at the terminal also counts as an agent.
AGENT = LINE._replace(reserved=HUMAN, allowed=f"{LINE.allowed}, not beginning with {HUMAN}")
AgentId = Annotated[str, Meta(min_length=1, max_length=128, extra={"text": AGENT})]
CallKey = Annotated[str, Meta(min_length=1, max_length=128, extra={"text": LINE})]
Intent = Annotated[str, Meta(min_length=1, max_length=2000, extra={"text": PROSE})]
ThoughtType = Literal["plan", "analysis", "decision", "reflection"]
Content = Annotated[str, Meta(min_length=1, max_length=65_536, extra={"text": PROSE})]
Description = Annotated[str, Meta(max_length=8000, extra={"text": PROSE})]
Words = Annotated[str, Meta(max_length=256, extra={"text": PROSE})]  # to search for


def rule_of(annotation: Any) -> Rule | None:
    """The rule of a type, even if it is one of several in a union."""
    for meta in getattr(annotation, "__metadata__", ()):
        if isinstance(meta, Meta) and meta.extra and "text" in meta.extra:
            rule: Rule = meta.extra["text"]
            return rule
    return next(filter(None, map(rule_of, typing.get_args(annotation))), None)
