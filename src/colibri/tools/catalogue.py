"""CATALOGUE: every tool there is, in the order of tools/list, and its form as catalogue.json."""

import json
import os
import sys

from colibri.tools import proofs, schema, system, tasks, trail
from colibri.tools.tool import Tool

CATALOGUE: tuple[Tool, ...] = (
    *tasks.TOOLS,
    *trail.TOOLS,
    *trail.SESSION_TOOLS,
    *proofs.TOOLS,
    *system.TOOLS,
)

INSTRUCTIONS = (
    "Colibri keeps an account of your work that anyone can verify later. The order of a normal"
    " session: audit_session_start with your intent; task_create for each piece of work, or"
    " task_next_actions to see what can be done now; thought_record with your session_id, and the"
    " task_id, for plans, analyses and decisions as you make them; task_update to move a task one"
    " step at a time; at least one thought about a task before it is DONE; merkle_finalize at the"
    " end, whose root you keep or report. A call that did not happen has isError, and its error, in"
    " error or in data.error, says what was wrong and what would be right: correct the call and try"
    " again. server_health tells where the database is and whether writing is possible."
)

PATH = os.path.join(os.path.dirname(__file__), "catalogue.json")


def render() -> str:
    """The text of catalogue.json."""
    catalogue = {"instructions": INSTRUCTIONS, "tools": [_entry(tool) for tool in CATALOGUE]}
    return json.dumps(catalogue, indent=1, ensure_ascii=False) + "\n"


def _entry(tool: Tool) -> dict[str, object]:
    return {
        "lane": tool.lane,
        "capability": tool.capability.value,
        "pattern": tool.pattern,
        "listing": schema.listing(tool),
    }


def main() -> None:
    """Write catalogue.json, or with --check say whether it is current."""
    text = render()
    if "--check" in sys.argv[1:]:
        with open(PATH, encoding="utf-8") as file:
            sys.exit(0 if file.read() == text else "catalogue.json is stale: run scripts/catalogue")
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
