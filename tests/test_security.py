"""SECURITY.md is compared with the code that it describes."""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest

from colibri.core import redaction
from tests.e2e.test_tamper_matrix import SEEN, UNSEEN
from tests.support.client import COLIBRI, TESTS, Server
from tests.support.program import colibri

ROOT = TESTS.parent
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_its_table_is_that_of_the_tamper_matrix() -> None:
    """Each tested attack with its outcome."""
    expected = [f"| {name} | {what} | {what} |" for name, (_, what) in SEEN.items()]
    expected += [f"| {name} | **not seen** | {what} |" for name, (_, what) in UNSEEN.items()]
    table = TEXT.partition("| attack |")[2].partition("\n\n")[0].splitlines()[2:]
    assert table == expected


def test_it_lists_every_kind_of_secret_that_is_redacted() -> None:
    kinds = {shape.kind for shape in redaction.SHAPES}
    section = TEXT.partition("The kinds are ")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z0-9-]+)`", section)) == kinds


def test_it_names_the_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[><=]", dependency)[0] for dependency in project["dependencies"]]
    assert f"({', '.join(names)})" in TEXT


# Each sentence that promises something, by its first words, and who holds it: tests, or trials of
# scripts/torture.
PROMISES = {
    "loses nothing that it acknowledged; commits a change and its record together or not at all": (
        "e2e/test_durability.py::test_a_call_that_ends_badly_leaves_no_change_and_one_pair_of_records",
        "e2e/test_full_disk.py"
        "::test_when_there_is_space_again_writing_resumes_and_nothing_acknowledged_is_lost",
        "../torture/kill.py::run",
        "../torture/power.py::run",
        "../torture/crash.py::run",
    ),
    "validates, bounds, records and redacts every call; the set of tools is closed": (
        "contract/test_surface.py::test_every_tool_of_every_domain_answers_and_rejects_what_does_not_fit",
        "contract/test_surface.py::test_every_call_is_an_enter_and_an_exit_row_with_one_sequence_no",
        "contract/test_surface.py::test_the_catalogue_has_the_tools_of_the_surface_and_no_other",
    ),
    "makes it evident, see the table below": (
        "e2e/test_tamper_matrix.py::test_the_server_detects_by_itself",
        "../torture/tamper.py::run",
    ),
    "a head kept out of the owner's reach reveals it": (
        "e2e/test_tamper_matrix.py::test_only_an_external_head_reveals",
    ),
    "runs nothing from the repository: git never reads its configuration": (
        "cli/test_hostile_repository.py::test_nothing_executes_whatever_the_repository_configures",
        "cli/test_hostile_repository.py::test_no_command_executes_what_the_repository_holds",
    ),
    "refuses to write through a link in it": (
        "cli/test_hostile_repository.py"
        "::test_a_link_is_named_and_never_followed_to_where_something_is_written",
    ),
    "parses strictly, within limits, without a network": (
        "verify/test_hostile.py::test_deep_long_and_odd_texts_are_refused_alike_in_both",
        "verify/test_hostile.py::test_no_file_takes_more_memory_than_is_promised",
        "verify/test_hostile.py::test_a_path_or_address_in_a_bundle_is_only_text",
    ),
    "makes files with mode 0600 and directories with 0700; warns of a database that others": (
        "store/test_schema.py::test_no_file_is_open_to_others_whatever_the_umask",
        "store/test_place.py::test_a_server_warns_of_a_database_that_others_can_read",
    ),
    "opens no network connection": ("test_security.py::test_nothing_can_open_a_connection",),
    "the `seq` and `head` of any answer's receipt (which names only what is synced)": (
        "server/test_messages.py"
        "::test_the_receipt_is_the_exit_record_and_the_record_has_the_hash_of_the_text",
        "cli/test_status.py::test_a_head_is_handed_out_only_when_it_is_synced",
    ),
    "A verification without a head says so in `not_checked`": (
        "e2e/test_tamper_matrix.py::test_an_untouched_log_is_valid_and_says_what_it_cannot_know",
    ),
    "records which process and which client sent each call": (
        "e2e/test_story.py::test_an_agent_plans_works_dies_and_resumes",
        "server/test_origin.py::test_a_client_is_known_by_its_name_and_version",
    ),
    "Change a task that another live session holds: the call is refused and nothing is written": (
        "e2e/test_claims.py::test_eight_agents_do_every_task_once_though_three_die",
        "e2e/test_claims.py::test_an_agent_that_wakes_up_is_refused_until_it_claims_again",
    ),
    "Take a task over without a record: it names the old holder and its last sign of life": (
        "cli/test_tasks.py::test_a_task_that_was_taken_over_says_from_whom",
        "e2e/test_claims.py::test_an_agent_that_wakes_up_is_refused_until_it_claims_again",
        "verify/test_vectors.py::test_the_python_verifier_names_the_lie_and_nothing_else",
    ),
    "Continue in a session that another process has resumed": (
        "e2e/test_claims.py::test_a_process_whose_session_was_resumed_elsewhere_is_refused",
    ),
    "a client's agent name that begins with `human:` is refused": (
        "e2e/test_refusals.py::test_what_does_not_fit_is_named_with_what_would",
    ),
    "a session's report, trail and counts contain only what names that session": (
        "web/test_whose_work.py"
        "::test_a_session_that_only_planned_is_said_to_have_created_its_tasks",
        "web/test_whose_work.py::test_a_session_is_not_credited_with_what_its_task_depended_on",
        "web/test_whose_work.py"
        "::test_what_a_second_agent_does_beside_the_first_is_not_in_its_report",
    ),
    "Reading another session's trail is not a sign of life and earns nobody credit": (
        "e2e/test_claims.py::test_a_reader_keeps_nothing_alive_and_is_credited_with_nothing",
    ),
    "Name an open session that is not its own, and so work in it": (
        "test_security.py::test_whoever_works_in_the_session_of_another_is_told_apart",
    ),
    "The next agent's brief quotes it, shortened and attributed to its author": (
        "cli/test_brief_search.py::test_what_somebody_wrote_cannot_pass_for_a_line_of_the_brief",
        "cli/test_brief_search.py::test_the_brief_fits_a_terminal_and_is_safe_to_look_at",
    ),
    "A ledger or a git directory counts only if you own it": (
        "test_project.py::test_what_belongs_to_somebody_else_does_not_count",
        "test_project.py::test_links_of_a_work_tree_that_do_not_agree_lead_nowhere",
        "test_project.py::test_a_directory_where_everybody_may_write_is_never_taken",
        "test_project.py::test_the_home_directory_is_taken_only_by_who_starts_there",
    ),
    "secrets of well-known shapes in its arguments, in lists, objects and keys as well, are": (
        "e2e/test_secrets.py::test_no_text_of_a_tool_carries_a_secret_into_the_ledger",
        "core/test_redaction.py::test_it_looks_into_lists_and_objects_and_says_where",
        "core/test_redaction.py::test_keys_are_texts_too_and_none_takes_the_place_of_another",
    ),
    "Hashes, the ledger, the tools, the answer and the trail on stderr see only that": (
        "e2e/test_secrets.py::test_the_trail_on_stderr_has_no_secrets_either",
    ),
    "the answer's `_meta` has `colibri/redacted` with the path and kind of each": (
        "e2e/test_secrets.py::test_the_answer_says_what_was_redacted_and_where",
    ),
    "An id that is a secret cannot be replaced: the call is refused": (
        "e2e/test_secrets.py::test_an_id_that_is_a_secret_is_refused",
    ),
    "They are found in any context": (
        "core/test_redaction.py::test_every_shape_is_found_in_these_surroundings_and_only_once",
        "core/test_redaction.py::test_a_token_is_known_directly_after",
    ),
    "Tests search for more than 400 shapes": (
        "core/test_redaction.py::test_the_corpus_is_as_large_as_it_is_said_to_be",
        "core/test_redaction.py::test_what_is_no_secret_is_left_alone_in_these_surroundings",
    ),
    "Every text takes linear time: patterns are bounded, long texts are scanned in pieces": (
        "test_patterns.py::test_a_pattern_takes_linear_time",
        "core/test_redaction.py::test_a_secret_is_found_where_two_pieces_meet_and_however_long_it_is",
        "test_patterns.py::test_a_long_text_never_holds_the_interpreter_for_long",
    ),
    "Hashes, commit ids, UUIDs and plain base64 are never taken for secrets": (
        "core/test_redaction.py::test_hashes_and_base64_of_anything_are_left_alone",
    ),
    "Error messages are redacted too": (
        "e2e/test_secrets.py::test_a_handlers_exception_is_scrubbed_before_it_is_logged_or_sent",
        "e2e/test_secrets.py::test_a_database_that_cannot_be_opened_is_named_from_home",
    ),
    "Refused arguments are described and never repeated": (
        "e2e/test_arguments.py::test_a_refused_value_is_never_repeated",
        "e2e/test_secrets.py::test_no_refusal_repeats_a_secret",
    ),
    "together with the arguments of the call that wrote it and every record of the task": (
        "store/test_erasure.py::test_a_record_goes_with_the_arguments_of_its_call",
        "store/test_erasure.py::test_a_text_goes_from_each_record_of_its_task_that_holds_it",
    ),
    "The file is rewritten, so that no copy is left": (
        "store/test_erasure.py::test_nothing_is_left_of_the_bytes",
        "store/test_erasure.py::test_copies_in_unused_parts_of_pages_go_too",
        "store/test_erasure.py::test_search_no_longer_finds_it",
    ),
    "If another program is still reading the log, the command says so, and": (
        "e2e/test_erase.py::test_old_pages_that_a_reader_holds_are_reported_and_can_be_removed_later",
    ),
    "All hashes, seals and proofs stay valid": (
        "e2e/test_erase.py::test_every_verifier_reports_it_and_the_proofs_hold",
        "e2e/test_erase.py::test_the_record_says_what_was_erased_by_whom_and_why",
    ),
    "A tampered record is not erased": (
        "store/test_erasure.py::test_a_record_that_was_tampered_with_is_not_erased",
    ),
    "If other users can open an existing database, the server warns": (
        "store/test_place.py::test_a_server_warns_of_a_database_that_others_can_read",
    ),
    "is refused for writing, and so is one that is mounted as a single file": (
        "store/test_place.py::test_a_network_or_user_space_file_system_is_refused",
        "store/test_place.py::test_a_database_that_is_mounted_by_itself_is_refused",
    ),
    "A database with a table, index, trigger or view that Colibri did not make": (
        "store/test_schema.py::test_whatever_is_dropped_replaced_or_added_is_found",
        "e2e/test_foreign_schema.py::test_a_running_server_stops_writing_and_names_the_change",
        "e2e/test_foreign_schema.py::test_no_server_opens_such_a_file",
    ),
    "name the differences, and compare every index with its table": (
        "store/test_indexes.py::test_every_index_is_compared_with_its_table",
        "store/test_indexes.py::test_audit_verify_chain_finds_it",
        "store/test_schema.py::test_an_index_over_other_keys_is_found_in_a_copy",
    ),
    "If committed pages cannot be copied from the write-ahead log": (
        "../torture/checkpoint.py::run",
    ),
    "A server acknowledges nothing unless the database, its `-wal` and its `-shm` are the files": (
        "e2e/test_replaced_database.py"
        "::test_the_next_writing_call_and_all_later_ones_are_refused_and_the_rest_still_works",
        "e2e/test_replaced_database.py"
        "::test_a_server_that_lost_its_write_ahead_log_keeps_others_out_and_loses_nothing",
        "../torture/identity.py::run",
    ),
    "older ones are refused": (
        "store/test_db.py::test_an_sqlite_that_can_corrupt_the_log_is_refused",
    ),
    "Nothing but SQLite opens the file": (
        "test_locks.py::test_every_place_that_opens_a_file_is_known_not_to_open_the_database",
        "../torture/locks.py::run",
    ),
    "Run-time dependencies are four": (
        "test_security.py::test_it_names_the_dependencies",
        "test_security.py::test_what_is_installed_is_pinned_by_hash",
    ),
    "A line is at most 4 MiB, 64 levels deep, with at most 100,000 commas": (
        "server/test_lines.py::test_a_line_that_is_too_long_is_refused_once_and_the_next_one_is_fine",
        "server/test_lines.py::test_sixty_four_levels_are_accepted_and_one_more_is_refused",
        "server/test_lines.py::test_more_commas_and_brackets_than_allowed_are_refused",
    ),
    "what waits is bounded": (
        "e2e/test_bounds.py"
        "::test_past_1024_open_calls_a_call_gets_overloaded_and_when_they_are_done_it_is_served",
        "e2e/test_bounds.py"
        "::test_past_32_mib_of_open_lines_a_call_gets_overloaded_and_when_they_are_done_it_is_served",
    ),
    "SQL is fixed, values are bound": ("test_security.py::test_texts_are_values_and_nothing_else",),
    "Tools return it in separate fields, with its author and time, and nothing executes it": (
        "test_security.py::test_texts_are_values_and_nothing_else",
    ),
    "Every pattern and scanner that processes text from outside takes linear time": (
        "test_patterns.py::test_a_function_takes_linear_time_for_what_hurts_any_pattern",
        "test_patterns.py::test_the_patterns_of_the_web_take_linear_time",
        "../torture/text.py::run",
    ),
    "make invisible characters in stored text visible": (
        "core/test_visible.py::test_of_every_character_only_what_can_be_seen_is_shown_as_it_is",
        "verify/test_hostile.py"
        "::test_what_a_display_may_ignore_is_spelt_out_by_all_who_show_a_text",
    ),
}


@pytest.mark.parametrize("promise", PROMISES)
def test_each_promise_is_still_made_and_held(promise: str) -> None:
    assert promise in " ".join(TEXT.split())
    for holder in PROMISES[promise]:
        file, _, name = holder.partition("::")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


NETWORK = {"asyncio", "ftplib", "http", "imaplib", "poplib", "smtplib", "socket", "socketserver"}
NETWORK |= {"ssl", "telnetlib", "urllib", "xmlrpc"}


def test_nothing_can_open_a_connection() -> None:
    """`colibri report --open` asks the desktop to show a file; it is no connection of ours."""
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not NETWORK & {name.partition(".")[0] for name in names}, file


@pytest.mark.parametrize("lock", sorted((ROOT / "locks").glob("*.txt")), ids=lambda lock: lock.name)
def test_what_is_installed_is_pinned_by_hash(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert pins
    assert all(re.match(r"[\w.\[\]-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", pin) for pin in pins)


def test_whoever_works_in_the_session_of_another_is_told_apart(tmp_path: Path) -> None:
    """Nothing keeps it out before the session is resumed; the trail shows another process."""
    with Server(tmp_path, COLIBRI) as ada, Server(tmp_path, COLIBRI) as liar:
        ada.data("audit_session_start", session_id="hers", intent="work", agent_id="ada")
        ada.data("task_create", title="honest")
        forged = {"session_id": "hers", "agent_id": "ada"}
        liar.data("task_create", title="dishonest", **forged)
        ada.data("audit_session_start", session_id="hers", resume=True)
        refused = liar.call("task_create", title="too late", **forged)
        assert refused["structuredContent"]["data"]["error"]["code"] == "ERR_CLAIMED"
    _, out, _ = colibri(tmp_path, "trail", "hers", "--json")
    calls = [json.loads(line) for line in out.splitlines()]
    made = {
        call["records"][1]["payload"]["set"]["title"][1]: call["server"]
        for call in calls
        if call["tool"] == "task_create" and call["records"]
    }
    assert made.keys() == {"honest", "dishonest"}
    assert made["honest"] == calls[0]["server"] != made["dishonest"]
    shown = colibri(tmp_path, "trail", "hers")[1]
    assert shown.count(" · server ") >= 3, "there and back"


HOSTILE = """'); DROP TABLE tasks; --" OR 1=1 * NEAR(a b) %s {0} $(touch made) `touch made`"""


def test_texts_are_values_and_nothing_else(tmp_path: Path) -> None:
    with Server(tmp_path, COLIBRI) as server:
        asked = {"title": HOSTILE, "description": HOSTILE, "project": HOSTILE}
        task = server.data("task_create", **asked)
        assert {name: task[name] for name in asked} == asked
        found = server.data("task_list", search=HOSTILE, project=HOSTILE)
        assert [one["task_id"] for one in found["tasks"]] == [task["task_id"]]
        session = server.data("audit_session_start", intent=HOSTILE)["session_id"]
        asked = {"session_id": session, "content": HOSTILE, "type": "plan"}
        server.data("thought_record", **asked, agent_id="ada")
        (thought,) = server.data("thought_record_list", session_id=session)["records"]
        assert (thought["content"], thought["agent_id"]) == (HOSTILE, "ada")
        assert thought["created_at"]
        assert server.data("audit_verify_chain")["valid"] is True
        assert server.close() == 0
    assert not [*tmp_path.rglob("made")]
