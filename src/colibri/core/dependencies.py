"""Detects cycles: whether a task would wait for itself. Follows links from both ends at once.

One end follows what the new dependencies depend on, the other what depends on the task. The search
ends when one side has no link left, so it costs twice the smaller side.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

MAX_LINKS = 5_000  # followed from each end; docs/formats.md §6 promises it

T = TypeVar("T")
Links = Callable[[T], Iterable[T]]


class TooManyLinks(Exception):
    """Both ends have more than MAX_LINKS."""


def find_cycle(
    task: T, depends_on: Collection[T], needs: Links[T], dependents: Links[T]
) -> list[T] | None:
    """A path from a task along its new dependencies back to itself; None if there is none."""
    if task in depends_on:
        return [task, task]
    first = {*depends_on}
    ahead: dict[T, T | None] = dict.fromkeys(first)  # each with the one that led to it
    behind: dict[T, T | None] = {task: None}
    both = zip(_follow(ahead, needs), _follow(behind, dependents), strict=False)
    for followed, ((one, needed), (other, dependent)) in enumerate(both, 1):
        if needed == task:
            return [task, *reversed(_path_from(ahead, one)), task]
        if dependent in first:
            return [task, dependent, *_path_from(behind, other)]
        if followed > MAX_LINKS:
            raise TooManyLinks
    return None


def _follow(reached: dict[T, T | None], links: Links[T]) -> Iterator[tuple[T, T]]:
    """Every link from the tasks reached so far, breadth first."""
    queue = [*reached]
    for one in queue:
        for other in links(one):
            if other not in reached:
                reached[other] = one
                queue.append(other)
            yield one, other


def _path_from(reached: dict[T, T | None], last: T) -> list[T]:
    """The path from a reached task back to the start."""
    way, at = [], reached[last]
    way.append(last)
    while at is not None:
        way.append(at)
        at = reached[at]
    return way
