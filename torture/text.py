"""Slow texts: made from the grammar of every pattern, mixed at random, given to all readers.

Each text goes to the pattern that it was made for and to one of the functions that read foreign
text. Processor time is judged, so that other work on the machine does not count.
"""

from collections.abc import Callable, Iterator
from random import Random

from tests.support.patterns import Pattern, attacks, collected, seconds
from tests.support.text_readers import READERS, copies
from torture import ControlFailed, Lab, Trial, Violation

PER_KIB = 0.005  # seconds that a KiB may take at most
LEAST = 0.005  # seconds that any text may take
SIZES = (64, 256, 1024, 1024, 2048, 4096, 16_384)
LARGE = 65_536
CONTROL_TEXTS = 20_000

Attack = tuple[Callable[[str], object], str, str]
Reader = tuple[Callable[[str], object], int]  # and how many times it meets the text


def _attacks(patterns: list[Pattern]) -> list[Attack]:
    return [
        (work, before, body)
        for pattern in patterns
        for work in (pattern.work(),)
        for before, body in attacks(pattern.pattern, pattern.flags)
    ]


def _text(random: Random, known: list[Attack], before: str, body: str) -> str:
    """A text made for a pattern, alone or mixed with texts for others, of some size."""
    size = LARGE if random.random() < 0.001 else random.choice(SIZES)
    parts = [body]
    while random.random() < 0.3:
        _, other, more = random.choice(known)
        parts.append(random.choice((other, more, other + more)))
    unit = "".join(parts) or "a"
    end = random.choice(("", "\0", "!", before))
    return f"{before}{(unit * (size // len(unit) + 1))[:size]}{end}"


def _tried(
    random: Random, known: list[Attack], readers: list[Reader], count: int
) -> Iterator[tuple[float, str]]:
    """The time per KiB of each text, and the text. Raises Violation."""
    often = [1 / times for _, times in readers]  # none takes most of the time
    for _ in range(count):
        work, before, body = random.choice(known)
        text = _text(random, known, before, body)
        for use, times in ((work, 1), *random.choices(readers, often)):
            size = times * len(text)
            took, allowed = seconds(use, text), max(LEAST * times, PER_KIB * size / 1024)
            if took > allowed:  # a text that is slow by chance is not slow three times
                took = min(took, *(seconds(use, text) for _ in range(2)))
            if took > allowed:
                raise Violation(f"{took:.3f} s for {size} characters: {text[:100]!r}")
            yield took * 1024 / max(1024 * times, size), text


def control(lab: Lab) -> str:
    """An added pattern that searches for its end from every start."""
    patterns = [Pattern("control", r"eyJ[\w-]{8,}\.")]
    try:
        for _ in _tried(lab.random, _attacks(patterns), [(str.upper, 1)], CONTROL_TEXTS):
            pass
    except Violation as problem:
        return f"a pattern that takes quadratic time is caught ({str(problem).partition(':')[0]})"
    raise ControlFailed("a pattern that takes quadratic time was not caught")


def run(lab: Lab) -> dict[str, object]:
    """Every text, and the worst of them."""
    patterns = collected()
    readers = [(work, copies(name)) for name, work in READERS.items()]
    known, worst = _attacks(patterns), 0.0
    for number, (took, _) in enumerate(_tried(lab.random, known, readers, lab.count), 1):
        worst = max(worst, took)
        if number % 2_000 == 0:
            lab.say(f"{number // 2:,} of {lab.count:,} texts")
    return {
        "patterns": len(patterns),
        "functions that read texts": len(READERS),
        "worst ms per KiB": round(worst * 1000, 1),
    }


TRIAL = Trial(
    name="text",
    title="texts made from the grammar of every pattern, mixed, to it and to all that read texts",
    claim=f"at most {PER_KIB * 1000:.0f} ms of processor time per KiB",
    unit="texts",
    quick=10_000,
    full=1_000_000,
    minutes=8,
    alone=True,
    control=control,
    run=run,
)
