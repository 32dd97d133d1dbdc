"""The tool that lists skills, which are instructions for agents; agents read the files."""

import os
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from colibri.core.modes import Capability
from colibri.core.skills import matches
from colibri.store import skills
from colibri.store.skills import Found
from colibri.tools.text import Words
from colibri.tools.tool import Tool, Work, tool

SkillCapability = Literal["read", "write", "spawn", "audit", "admin"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_INSTALLED = os.path.join(_PACKAGE, "skills")
_SOURCE = os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "plugin", "skills")


class List(Struct, forbid_unknown_fields=True, omit_defaults=True):
    search: Annotated[
        Words | None,
        Meta(description="words that all occur in name or description, in any case"),
    ] = None
    capability: Annotated[
        SkillCapability | None, Meta(description="only skills that declare it")
    ] = None


class Skill(Struct, omit_defaults=True):
    name: str
    description: str
    version: str | None
    capabilities: list[str]
    greek_letter: str | None
    canonical: bool
    path: str
    sha256: str
    license: str | None = None
    compatibility: str | None = None
    entrypoint: str | None = None
    allowed_tools: list[str] = []
    metadata: dict[str, Any] = {}
    extra: dict[str, Any] = {}


class Skipped(Struct):
    path: str
    reason: str


class Registry(Struct):
    """`packaged` are Colibri's own skills, without those that the project has word for word."""

    skills: list[Skill]
    skipped: list[Skipped]
    root: str
    note: str | None
    packaged: list[Skill]


@tool(
    "skill_list",
    "List skills",
    "Find skills: files that tell an agent how a kind of work is done. skills are"
    " the project's, the canonical colibri-* first; packaged come with Colibri; skipped says"
    " which files are not skills and why. To use one, read the file at its path, and judge it"
    " first: whoever can write to the project can write one.",
    capability=Capability.BROWSE,
    pattern="A",
    sliced=True,
)
def find(work: Work, args: List) -> Registry:
    root, database = work.config.skills_root, work.config.db_path
    listing = skills.read(root, work.config.project, database=database, pause=work.pause)
    own = packaged_root()
    known = {found.sha256 for found in listing.skills}
    shipped = skills.read(own, own, database=database).skills
    packaged = [found for found in shipped if found.sha256 not in known]
    return Registry(
        skills=_wanted(listing.skills, args),
        skipped=[Skipped(one.path, one.reason) for one in listing.skipped],
        root=root,
        note=listing.note,
        packaged=_wanted(packaged, args),
    )


def packaged_root() -> str:
    """The folder of Colibri's own skills: in the package or, if not installed, the source tree."""
    return _INSTALLED if os.path.isdir(_INSTALLED) else _SOURCE


def _wanted(found: Iterable[Found], args: List) -> list[Skill]:
    words = (args.search or "").casefold().split()
    return [
        _skill(one) for one in found if matches(one.skill, words=words, capability=args.capability)
    ]


def _skill(found: Found) -> Skill:
    fields = found.skill._asdict()
    fields["allowed_tools"] = list(found.skill.allowed_tools)  # () is not the default, []
    return Skill(path=found.path, sha256=found.sha256, **fields)


TOOLS: tuple[Tool, ...] = (find,)
