"""core/skills.py: where the frontmatter ends, and what of it may be missing.

The styles that skills are written in are in tests/vectors/skills; tests/e2e/test_skill_list.py has
what becomes of them.
"""

import pytest

from colibri.core.errors import Malformed
from colibri.core.skills import MAX_HEAD, between_fences, matches, parse


@pytest.mark.parametrize(
    "data",
    [
        b"---\nA\n---\nbody",
        b"---\nA\n---",
        b"---\r\nA\n---\r\nbody",
        b"\xef\xbb\xbf---\nA\n---\n",
        b"---  \t\nA\n---\t \nbody",
        b"---\nA\n---\nbody\n---\nmore\n---\n",
        b"---\nA\n---\n" + b"x" * (2 * MAX_HEAD),
    ],
)
def test_the_frontmatter_stands_between_two_fences(data: bytes) -> None:
    assert between_fences(data) == b"A\n"


@pytest.mark.parametrize("data", [b"", b"--", b"----\nA\n---\n", b" ---\nA\n---\n", b"\n---\n"])
def test_what_does_not_begin_with_a_fence_has_none(data: bytes) -> None:
    with pytest.raises(Malformed, match="its first line is not ---"):
        between_fences(data)


@pytest.mark.parametrize(
    "data",
    [
        b"---",
        b"---\nA\n",
        b"---\nA\n ---\n",
        b"---\nA\n---- \n",
        b"---\nA\n--- x\n",
        b"---\n" + b"A\n" * MAX_HEAD + b"---\n",
    ],
)
def test_without_a_second_fence_it_does_not_end(data: bytes) -> None:
    with pytest.raises(Malformed, match="no line --- ends its frontmatter within the first 64 KiB"):
        between_fences(data)


@pytest.mark.parametrize("after", [b"", b"\n", b"x\n", b"-\n"])
def test_a_fence_at_the_very_end_of_64_kib_counts_only_if_it_is_whole(after: bytes) -> None:
    """The bytes behind the limit are not looked at, so a fence must end before it."""
    filler = b"A" * (MAX_HEAD - len(b"---\n") - len(b"\n---"))
    data = b"---\n" + filler + b"\n---" + after
    if after:
        with pytest.raises(Malformed, match="no line --- ends"):
            between_fences(data)
    else:
        assert between_fences(data) == filler + b"\n"


@pytest.mark.parametrize("name", ["x", "a-b", "0", "a" * 64, "a1-2b"])
def test_a_name_of_the_right_form_that_is_its_folder_s_is_taken(name: str) -> None:
    assert parse(f"name: '{name}'\ndescription: Does.".encode(), name).name == name


@pytest.mark.parametrize(
    "name", ["A", "-a", "a-", "a--b", "a_b", "a b", "a/b", "..", "a" * 65, "ä"]
)
def test_a_name_of_another_form_is_refused(name: str) -> None:
    """Names match a pattern, a single component."""
    with pytest.raises(Malformed, match="its name must be 1 to 64 characters"):
        parse(f"name: '{name}'\ndescription: Does.".encode(), name)


@pytest.mark.parametrize("name", ["", "name:", "name: [x]", "name: {x: y}"])
def test_without_a_name_it_is_no_skill(name: str) -> None:
    with pytest.raises(Malformed, match="it has no name"):
        parse(f"description: Does.\n{name}".encode(), "x")


def test_an_integer_or_a_truth_is_text_where_text_is_wanted() -> None:
    assert parse(b"name: 7\ndescription: 8", "7").description == "8"
    assert parse(b"name: true\ndescription: x", "true").name == "true"


@pytest.mark.parametrize(
    ("words", "capability", "found"),
    [
        ([], None, True),
        (["writ"], None, True),
        (["a-writer", "poems"], None, True),
        (["poems", "prose"], None, False),
        (["strasse"], None, True),
        ([], "write", True),
        ([], "spawn", False),
        (["prose"], "write", False),
    ],
)
def test_a_search_wants_every_word_and_the_capability(
    words: list[str], capability: str | None, found: bool
) -> None:
    """Specification 5.20: every word occurs, ignoring case, as a substring."""
    skill = parse(
        "name: a-writer\ndescription: Poems of the Straße\ncapabilities: write".encode(), "a-writer"
    )
    assert matches(skill, words=words, capability=capability) is found
