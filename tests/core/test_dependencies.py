"""core/dependencies.py: a way back is found if there is one, and at the price of one end."""

import random
from itertools import pairwise

import pytest

from colibri.core.dependencies import MAX_LINKS, TooManyLinks, find_cycle

Graph = dict[int, list[int]]


def reversed_links(graph: Graph) -> Graph:
    return {one: [other for other in graph if one in graph[other]] for one in graph}


def leads_back(graph: Graph, task: int, depends_on: list[int]) -> bool:
    """By the definition."""
    seen, queue = {*depends_on}, [*depends_on]
    for one in queue:
        queue += [other for other in graph[one] if other not in seen]
        seen.update(graph[one])
    return task in seen


@pytest.mark.parametrize("seed", range(200))
def test_a_cycle_is_found_exactly_if_there_is_one(seed: int) -> None:
    chance = random.Random(seed)
    graph: Graph = {one: chance.sample(range(one), min(one, 2)) for one in range(12)}
    behind = reversed_links(graph)
    task, depends_on = chance.randrange(12), chance.sample(range(12), 2)
    found = find_cycle(task, depends_on, graph.__getitem__, behind.__getitem__)
    assert (found is not None) == leads_back(graph, task, depends_on)
    if found is not None:
        assert (found[0], found[-1]) == (task, task)
        assert found[1] in depends_on
        assert all(to in graph[at] for at, to in pairwise(found[1:]))


def test_where_one_end_has_no_link_the_other_is_not_followed() -> None:
    """2,130 calls with 100 dependencies each are 213,000 links, and none of them is read."""
    asked: list[int] = []

    def needs(one: int) -> list[int]:
        asked.append(one)
        return [*range(one - 100, one)]

    assert find_cycle(-1, [10_000, 20_000], needs, lambda one: []) is None
    assert len(asked) <= 1


def test_a_search_that_would_go_on_for_long_at_both_ends_is_given_up() -> None:
    with pytest.raises(TooManyLinks):
        find_cycle(0, [1], lambda one: [one + 1], lambda one: [one - 1])
    short = find_cycle(0, [1], lambda one: [one + 1], lambda one: [one - 1] * (one > -MAX_LINKS))
    assert short is None
