"""What people and agents read is plain English, and no page repeats another.

The phrases are ones that a native reader stumbles over. Pages, help texts, tool descriptions, every
text in the source that is long enough to be a message, and comments and docstrings are searched.
"""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from colibri import cli
from colibri.tools.catalogue import CATALOGUE, INSTRUCTIONS
from tests.support.client import TESTS

ROOT = TESTS.parent
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/clients/*.md",
        "docs/decisions/*.md",
        "plugin/skills/*/*.md",
    )
    for path in ROOT.glob(pattern)
)
MADE = {"cli.md", "tools.md"}  # by scripts/reference, from help texts and schemas

# What to avoid, and a sentence that has it: the test of this list.
PHRASES = {
    r"\b(?:to|of|for|from|by|with|than) who\b(?! (?:it|they) )": "They prove it to who knows.",
    r"(?:^|[.;:] |\| )Who (?:\w+ ){1,8}?(?:can|may|must|needs|has|is|gets|sees)\b[^?]*\.": (
        "Who may write the file can forge it."
    ),
    r"\| who (?:wrote|sends|reads|knows)\b": "| who sends a bundle | can lie |",
    r"\bmend(?:s|ed|ing)?\b": "Mend its permissions.",
    r"\banew\b": "The file is written anew.",
    r"\bby another way\b": "a root that you got by another way",
    r"\b(?:is|are|was|were|be|been) said\b": "what is erased already is said",
    r"\bstand(?:s|ing)? beside\b": "its log stands beside it",
    r"\bbeside (?:it|them|the|each|others)\b": "the log beside it",
    r"\bcomes? to (?:his|her|its|their) turn\b": "nobody comes to his turn",
    r"\bthere (?:is|are) not\b(?! (?:enough|yet))": "a move that there is not",
    r"\bthat there (?:is|are)[.;,]": "These are the moves that there are.",
    r"\b(?:bring|come)s? along\b": "the hash that Python brings along",
    r"\bends? well\b": "all of them end well",
    r"\b(?:his|him)\b": "whoever keeps it out of his reach",
    r"\bhold(?:s|ing)? (?:\w+ ){1,4}against\b": "both hold a bundle against it",
    r"\bis held against\b": "the page is held against the code",
    r"\bgo(?:es)? on with\b": "another process goes on with the session",
    r"\bthat (?:is|are) no (?:text|skill|call|number|json)\b": "a key that is no text",
    r"\b(?:is|was) none that\b": "record 3 is none that a server writes",
    r"\bnobody of\b": "nobody of this round is served",
    r"\blook(?:s|ed)? whether\b": "look whether it happened",
    r"\bin a way that (?:was|is) not\b": "it failed in a way that was not foreseen",
    r"\b(?:erased|sealed|done|taken) already\b": "record 9 is erased already",
    r"\bfor ever\b": "it is sealed for ever",
    r"\bis told of\b": "the client is told of it",
    r"\bto be had\b": "no lock is to be had",
    r"\bthe one or the other\b": "the one or the other is refused",
    r"\bof it all\b": "a copy of it all",
}
FOUND = [
    re.compile(phrase, re.MULTILINE | (0 if "Who" in phrase else re.IGNORECASE))
    for phrase in PHRASES
]


def phrases_in(text: str) -> list[str]:
    return [found[0] for pattern in FOUND for found in pattern.finditer(text)]


def prose(page: Path) -> str:
    """A page without its code blocks, each paragraph on one line."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(?<!\n)\n(?=[^\n|#*>-])", " ", text)


def messages() -> Iterator[tuple[str, str]]:
    """Every text of at least four words in the source, with the file that has it; no docstrings."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        skipped = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Expr):
                skipped.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                skipped |= {part for part in node.values if isinstance(part, ast.Constant)}
                parts = (p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
                yield f"{path.parent.name}/{path.name}", "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and node not in skipped:
                text = str(node.value)
                if len(re.findall(r"[A-Za-z]{2,}", text)) >= 4:
                    yield f"{path.parent.name}/{path.name}", text


@pytest.mark.parametrize(("phrase", "sentence"), PHRASES.items(), ids=PHRASES)
def test_a_phrase_of_the_list_is_found_in_a_sentence_that_has_it(
    phrase: str, sentence: str
) -> None:
    assert re.search(phrase, sentence, re.IGNORECASE)
    assert phrases_in(f"All is fine. {sentence}")


@pytest.mark.parametrize(
    "sentence",
    [
        "Who did it, and who may change a task?",
        "It names who holds each task.",
        "An agent that lies about who it is.",
        "Whoever gets the file can check it.",
        "there is not enough memory",
        "| who holds what |",
    ],
)
def test_ordinary_sentences_are_left_alone(sentence: str) -> None:
    assert phrases_in(sentence) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_none_of_them(page: Path) -> None:
    assert phrases_in(prose(page)) == []


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_help_of_a_command_has_none_of_them(name: str) -> None:
    assert phrases_in(" ".join(cli.parser_of(name).help_in(80).split())) == []


def test_no_message_and_no_tool_has_one_of_them() -> None:
    told = [("instructions", INSTRUCTIONS), *((tool.name, tool.description) for tool in CATALOGUE)]
    told += messages()
    assert len(told) > 900
    found = {(name, text) for name, text in told if phrases_in(text)}
    assert found == set()


# Where comments and docstrings are searched too, and what they alone must not contain.
CODE = [
    *("src/**/*.py", "scripts/*", ".ci/*", "plugin/start", "mcpb/*.py", "bench/**/*.py"),
    *("torture/*.py", "tests/**/*.py"),
]
# Where everything is searched. Migrations are not: their comments are part of existing databases.
WHOLE = [
    *("src/**/*.mjs", "src/**/*.html", "src/**/*.css", "tests/**/*.mjs", "tests/**/*.toml"),
    *("*.toml", "*.json", "mcpb/*.json", "plugin/**/*.json"),
]
IN_CODE = {
    r"\blet(?:s|ting)? go of\b": "it lets go of the server",
    r"\b(?:is|are) passed over\b": "a response is passed over",
    r"\bto be called (?:before|after|within)\b": "To be called before a commit.",
    r"\bis (?:given|handed) back\b": "what kept it from being committed is given back",
    r"\bwhat (?:has )?bec[ao]me of\b": "says what became of its files",
    r"\b(?:is|are|was|were) in the way\b": "another process was in the way",
    r"\bstands? (?:there|where|around)\b": "the text that stands there",
    r"\bwhere (?:that|it) can be\b": "in one piece, where that can be",
    r"\bmakes? sure of\b": "Make sure of version and schema.",
    r"\bwhom\b": "as somebody would whom nothing holds back",
    r"\bwho (?:reads|needs|wants|comes|verifies|only)\b": "who reads has to wait",
    r"\blikelier\b": "a crash is likelier to be interesting",
    r"\bwhatever (?:it|they) comes? to\b": "calls, whatever they come to",
}
FOUND_IN_CODE = [*FOUND, *(re.compile(phrase, re.IGNORECASE) for phrase in IN_CODE)]


def remarks(source: str) -> Iterator[str]:
    """Each docstring and each comment of a program in Python, or all comments of a shell script."""
    if re.match(r"#!.*sh$", source, re.MULTILINE):
        yield " ".join(re.findall(r"(?:^|\s)#(?!!) ?(.*)", source, re.MULTILINE))
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield " ".join((ast.get_docstring(node) or "").split())
    row, comment = 0, ""  # the last row of a comment that may continue
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            is_alone = token.line.strip() == token.string
            if not is_alone or token.start[0] != row + 1:
                yield comment
                comment = ""
            row = token.start[0] if is_alone else 0
            comment += f" {token.string.lstrip('# ')}"
    yield comment


def stumbles(source: str) -> list[str]:
    return [
        found[0]
        for remark in remarks(source)
        for pattern in FOUND_IN_CODE
        for found in pattern.finditer(remark)
    ]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""Mend\nit."""', ["Mend"]),
        ('class A:\n    """Written\n    anew."""', ["anew"]),
        ('async def a() -> None:\n    def b() -> None:\n        """To who knows."""', ["To who"]),
        ("x = 1  # a move that there is not", ["there is not"]),
        ("# its log stands\n# beside it", ["stands beside", "beside it"]),
        ("x = 1  # its log stands\n# beside the point", ["beside the"]),
        ('"""Fine."""\nx = "Mend it."  # also fine\n', []),
        ("#!/bin/sh\n# Start.\nrun  # to mend: again\n", ["mend"]),
    ],
)
def test_a_phrase_in_a_comment_or_docstring_is_found(source: str, found: list[str]) -> None:
    assert stumbles(source) == found


@pytest.mark.parametrize(("phrase", "sentence"), IN_CODE.items(), ids=IN_CODE)
def test_a_phrase_for_code_is_found_in_a_sentence_that_has_it(phrase: str, sentence: str) -> None:
    assert re.search(phrase, sentence, re.IGNORECASE)
    assert stumbles(f"# All is fine. {sentence}")


def _is_installed(path: Path) -> bool:
    """Whether it is in a folder that a script made, such as bench/.contestants."""
    return any(part.startswith(".") for part in path.relative_to(ROOT).parts[1:])


@pytest.mark.parametrize("pattern", CODE)
def test_comments_and_docstrings_have_none_of_them(pattern: str) -> None:
    files = [path for path in ROOT.glob(pattern) if path.is_file() and not _is_installed(path)]
    assert files
    found = {str(path.relative_to(ROOT)): stumbles(path.read_text("utf-8")) for path in files}
    assert {name: phrases for name, phrases in found.items() if phrases} == {}


def joined(source: str) -> str:
    """A file without tags and signs of comments, each paragraph and each text on one line."""
    text = re.sub(r'(["`]) \+\n\s*["`]', "", source)
    text = re.sub(r"^[ \t]*(?://+|/?\*+/?|#+)[ \t]?", "", text, flags=re.MULTILINE)
    return re.sub(r"[ \t]*\n[ \t]*(?=\S)", " ", re.sub(r"<[^<>]{1,300}>", "", text))


@pytest.mark.parametrize(
    "source",
    [
        "// its log stands\n// beside it",
        "/** A log that stands\n * beside it. */",
        'say("its log stands " +\n  "beside it");',
        "<p>A log that <b>stands</b>\nbeside it.</p>",
        '{"description": "How much\\nis said"}\n# is said',
    ],
)
def test_a_phrase_that_is_broken_over_lines_is_found(source: str) -> None:
    assert phrases_in(joined(source))


@pytest.mark.parametrize("pattern", WHOLE)
def test_programs_and_pages_for_browsers_and_settings_have_none_of_them(pattern: str) -> None:
    files = [path for path in ROOT.glob(pattern) if not _is_installed(path)]
    assert files
    found = {
        str(path.relative_to(ROOT)): [
            match[0]
            for expression in FOUND_IN_CODE
            for match in expression.finditer(joined(path.read_text("utf-8")))
        ]
        for path in files
    }
    assert {name: phrases for name, phrases in found.items() if phrases} == {}


def sentences(text: str) -> Iterator[str]:
    """Those of at least eight words, without markup, in lower case."""
    for sentence in re.split(r"(?<=[.!?:;])\s+|\n+|\s\|\s", text):
        words = re.findall(r"[\w'-]+", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", sentence).lower())
        if len(words) >= 8:
            yield " ".join(words)


def repeated(pages: dict[str, str]) -> dict[str, list[str]]:
    """Each sentence that occurs more than once, with the pages that have it."""
    where = defaultdict(list)
    for name, text in pages.items():
        for sentence in sentences(text):
            where[sentence].append(name)
    return {sentence: names for sentence, names in where.items() if len(names) > 1}


def test_a_sentence_that_occurs_twice_is_found() -> None:
    twice = "Keep the root where the owner of the ledger cannot change it."
    pages = {
        "one": f"# A\n\n{twice} More.\n",
        "two": f"- Yes. {twice.replace('ledger', '`ledger`')}\n",
    }
    assert list(repeated(pages).values()) == [["one", "two"]]


# Rows of tables and items of definitions that say the same of different things.
DELIBERATE = {
    "the same with one sync per call there too",
    "the start of a call is not recorded",
    "the call enter and call exit of every call that wrote one of the records above",
    "- the erasures that name any record of the bundle",
    "nothing else with gaps between them and all payloads that are not erased",
}


def test_a_reader_meets_no_sentence_twice() -> None:
    """Of the pages that one person reads: a client's page and a skill each have a reader alone."""
    alone = {"clients", "skills"}
    pages = {
        str(page.relative_to(ROOT)): prose(page)
        for page in PAGES
        if page.name not in MADE and not alone & set(page.parts)
    }
    assert repeated(pages).keys() == DELIBERATE
