"""SECURITY.md is compared with the code that it describes."""

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from colibri.core import redaction
from tests.e2e.test_tamper_matrix import SEEN, UNSEEN
from tests.support.client import COLIBRI, TESTS, Server
from tests.support.program import colibri

ROOT = TESTS.parent
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_its_table_is_that_of_the_tamper_matrix() -> None:
    """Each tested attack with its outcome."""
    expected = [f"| {name} | {what} | {what} | {what} |" for name, (_, what) in SEEN.items()]
    expected += [
        f"| {name} | **not seen** | {what} | diverged |" for name, (_, what) in UNSEEN.items()
    ]
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


# Words of each sentence that promises something, and who holds it: tests, or trials of
# scripts/torture. Every other sentence is in NO_PROMISE.
PROMISES = {
    "except to a PostgreSQL server that you name with `COLIBRI_DB_URL`": (
        "test_security.py::test_nothing_can_open_a_connection",
        "test_security.py::test_only_a_server_that_was_given_a_url_connects",
    ),
    "The role that servers use cannot change or delete a record": (
        "store/test_postgres_rights.py::test_no_role_changes_deletes_or_takes_over_anything",
    ),
    "Nor can it insert one with a wrong hash or in the wrong place": (
        "store/test_postgres_guard.py::test_a_forged_record_is_refused",
        "store/test_postgres_guard.py::"
        "test_a_record_with_its_own_hash_in_the_wrong_place_is_refused",
    ),
    "Verification compares these with the records and names what differs": (
        "store/test_postgres_tampering.py::test_what_the_writer_can_falsify_is_named",
    ),
    "Only a fourth role, for `colibri erase`, can take out the text": (
        "store/test_postgres_rights.py::test_the_eraser_erases_once_and_only_what_may_go",
        "store/test_postgres_rights.py::test_the_writer_does_not_erase",
    ),
    "Verification then finds what it finds in a file": (
        "store/test_postgres_tampering.py::test_a_record_that_a_superuser_changed_is_named",
        "store/test_postgres_tampering.py::"
        "test_a_truncated_or_emptied_ledger_is_detected_with_a_head",
    ),
    "or right to write in the schema that is missing, different or new": (
        "store/test_postgres_expected.py::test_a_change_is_named",
        "store/test_postgres_tampering.py::"
        "test_a_guard_that_was_taken_away_is_named_and_so_is_what_came_past_it",
    ),
    "A URL with a password in it is refused": (
        "store/test_postgres_team.py::test_a_secret_on_the_command_line_is_refused_and_not_repeated",
    ),
    "Passwords come from where libpq looks for them": (
        "cli/test_team.py::test_passwords_stay_where_libpq_finds_them",
        "store/test_postgres_team.py::test_passwords_come_from_the_file_of_passwords",
    ),
    "Erased text stays in PostgreSQL's dead rows": (
        "cli/test_server_ledger.py::test_only_the_eraser_erases_and_is_named",
    ),
    "every session records the file's digest, and every DONE the rule and the commands": (
        "e2e/test_gates.py::test_done_is_refused_until_the_command_was_seen",
        "e2e/test_gates.py::test_bundles_carry_the_evidence_and_say_what_they_cannot_show",
        "web/test_deeds.py::test_the_rule_that_a_task_was_done_under_is_shown",
    ),
    "the ledger is tamper-evident, so the promise is only that verification shows it": (
        "e2e/test_tamper_matrix.py::test_the_server_detects_by_itself",
        "e2e/test_tamper_matrix.py::test_only_what_was_kept_outside_reveals",
    ),
    "Each record names the hash of the one before it, each sealed session is a Merkle tree": (
        "e2e/test_tamper_matrix.py::test_the_server_detects_by_itself",
        "verify/test_by_hand.py::test_the_snippet_accepts_a_good_bundle",
        "verify/test_merkle_vectors.py::test_the_published_roots_come_out",
    ),
    "So `audit_verify_chain` detects most tampering without help": (
        "e2e/test_tamper_matrix.py::test_the_server_detects_by_itself",
    ),
    "`colibri verify` and `audit_verify_chain` compare the log with them": (
        "e2e/test_tamper_matrix.py::test_only_what_was_kept_outside_reveals",
        "cli/test_heads.py::test_records_newer_than_any_witness_are_counted",
    ),
    "`colibri witness --push` sends one to a git host": (
        "cli/test_witness.py::test_a_push_is_confirmed_only_after_the_remote_was_read_back",
        "cli/test_witness.py::test_a_chain_that_was_force_pushed_is_named_and_not_overwritten",
    ),
    "Colibri's server does not, because it never runs git": (
        "cli/test_witness_verdict.py::test_a_log_that_was_cut_off_or_rewritten_is_seen",
        "cli/test_git.py::test_no_other_file_starts_git_or_any_program_unseen",
    ),
    "`--head SEQ:HEX` and `--root SIZE:HEX` compare a log or a bundle with it": (
        "cli/test_verify.py::test_a_rewritten_log_is_detected_with_a_head_or_a_root",
        "verify/test_cli.py::test_another_root_or_head_exits_1",
    ),
    "A log that does not extend a witness is `diverged`, and the verdict is bad": (
        "e2e/test_tamper_matrix.py::test_only_what_was_kept_outside_reveals",
        "cli/test_witness_verdict.py::test_a_log_that_was_cut_off_or_rewritten_is_seen",
    ),
    "Times come from the machine's clock; the order is that of `seq`": (
        "../torture/clock.py::run",
    ),
    "nobody changes, takes over or gets credit for another agent's work by accident": (
        "e2e/test_claims.py::test_eight_agents_do_every_task_once_though_three_die",
        "web/test_whose_work.py::test_the_work_of_a_second_agent_is_not_in_the_report_of_the_first",
    ),
    "A session that lost its task is refused until it claims it again, even if the task is free": (
        "e2e/test_claims.py::test_an_agent_that_wakes_up_is_refused_until_it_claims_again",
    ),
    "Withdraw a call, its own included: refused calls are recorded like all others": (
        "e2e/test_durability.py::test_a_call_that_ends_badly_leaves_no_change_and_one_pair_of_records",
        "store/test_bundle.py"
        "::test_a_refused_call_about_a_task_is_disclosed_with_the_session_and_with_the_task",
    ),
    "`colibri trail` shows where the process changes": (
        "test_security.py::test_agents_that_share_a_session_are_distinguished",
    ),
    "`colibri tasks` and `colibri brief` show who holds what, and when each holder was": (
        "cli/test_tasks.py::test_the_holder_of_a_task_is_shown_while_it_matters",
        "cli/test_brief_search.py::test_people_get_the_brief_that_agents_get",
    ),
    "that is the server's word: a verifier lists it as not checked": (
        "verify/test_vectors.py::test_the_python_verifier_names_the_lie_and_nothing_else",
    ),
    "Which ledger a server finds is decided by files alone": (
        "test_project.py::test_the_nearest_ledger_above_is_taken_before_any_repository",
        "test_project.py::test_links_and_odd_things_in_the_places_of_a_ledger_or_repository_do_not_count",
    ),
    "The search never picks your home directory, `/` or a directory that everybody may write to": (
        "test_project.py::test_a_world_writable_directory_is_never_used",
        "test_project.py::test_the_home_directory_is_used_only_when_started_there",
    ),
    "records what the host reports about its agent: which tool it called": (
        "hook/test_hook.py::test_a_session_of_a_real_host_becomes_deeds",
        "hook/test_hook.py::test_a_tool_call_is_recorded_with_its_command_and_digests_of_the_rest",
        "hook/test_hook.py::test_an_edit_is_recorded_with_what_is_on_disk",
    ),
    "The ledger keeps these reports apart from what the agent itself wrote": (
        "store/test_deeds.py::test_a_deed_is_a_record_and_its_texts_are_another",
        "e2e/test_gates.py::test_insufficient_evidence_is_refused_with_the_reason",
    ),
    "The verdict and the report say what is known about that: settings that changed between": (
        "cli/test_verify.py::test_what_deeds_do_not_show_is_kept_apart_from_findings",
        "cli/test_unexplained.py::test_each_change_that_nobody_reported_is_named_once",
        "web/test_deeds.py::test_what_is_not_known_is_listed",
        "web/test_deeds.py::test_changed_files_that_no_action_explains_are_named",
    ),
    "[docs/hosts.md](docs/hosts.md) lists what each of them reports and what it does not": (
        "hook/test_hosts.py::test_a_real_payload_yields_what_its_host_reported",
        "hook/test_hosts.py::test_what_is_left_out_is_listed",
    ),
    "A deed that was recorded cannot be altered, moved, bound to another session or removed": (
        "verify/test_deeds.py::test_both_verifiers_find_it",
        "store/test_deeds.py::test_a_row_that_is_not_as_its_record_says_is_found",
    ),
    "The hook reads what the host sends as hostile input": (
        "hook/test_harmless.py::test_hostile_values_are_recorded_in_a_form_that_verifies",
        "hook/test_harmless.py::test_the_program_takes_any_change_of_a_real_payload",
        "hook/test_hosts.py::test_any_field_may_be_missing_of_another_type_or_nested",
    ),
    "opens only regular ones inside the work tree, and follows no link out of it": (
        "hook/test_hook.py::test_only_regular_files_in_the_work_tree_are_read",
    ),
    "Besides these it reads `colibri.toml`, the files in which git keeps the branch": (
        "hook/test_harmless.py"
        "::test_it_writes_to_its_own_files_runs_nothing_and_reads_what_is_documented",
    ),
    "It runs no program, git included": (
        "hook/test_harmless.py"
        "::test_it_writes_to_its_own_files_runs_nothing_and_reads_what_is_documented",
    ),
    "It writes only to a database that Colibri made at this version": (
        "hook/test_harmless.py"
        "::test_it_writes_to_its_own_files_runs_nothing_and_reads_what_is_documented",
        "hook/test_harmless.py::test_a_database_that_is_not_as_this_version_made_it_is_not_written",
        "hook/test_harmless.py::test_whatever_the_umask_nobody_else_can_open_its_files",
    ),
    "Whatever goes wrong, its exit code is 0 and the tool call goes on": (
        "hook/test_harmless.py::test_a_hook_waits_no_longer_than_it_may",
        "hook/test_harmless.py::test_without_rights_to_the_ledger_the_host_notices_nothing",
        "hook/test_harmless.py::test_a_host_that_never_closes_its_pipe_is_not_waited_for",
        "hook/test_gate.py"
        "::test_an_edit_passes_where_the_ledger_cannot_be_read_and_the_deed_says_so",
    ),
    "It denies a tool call in one case": (
        "hook/test_gate.py::test_an_edit_without_a_task_is_denied_with_the_call_that_allows_it",
        "hook/test_gate.py"
        "::test_what_the_rule_does_not_clearly_forbid_passes_and_the_deed_says_what_was_not_judged",
        "hook/test_hosts.py::test_each_host_can_be_told_to_report_and_no_hook_changes_what_it_does",
    ),
    "An agent that stops without having recorded its work is asked to, once in a session": (
        "hook/test_hook.py::test_an_agent_that_stops_without_a_word_is_reminded_once",
        "hook/test_hook.py::test_an_agent_that_recorded_its_work_is_not_reminded",
    ),
    "The reason is recorded in the ledger, in the state directory, and in git with the next": (
        "cli/test_witness_verdict.py::test_an_acceptance_survives_the_state_directory",
        "cli/test_witness_verdict.py::test_every_other_machine_knows_what_was_accepted_and_no_path",
    ),
    "It is a statement and proves nothing. **Whoever can write the ledger and push": (
        "cli/test_witness_verdict.py"
        "::test_the_reason_in_place_of_a_proof_accepts_the_checkpoint_before",
        "cli/test_witness_verdict.py::test_a_later_loss_is_not_covered_by_what_was_accepted",
    ),
    "It keeps commands and paths as text, after the redaction below; prompts, file contents": (
        "hook/test_hook.py::test_secrets_in_commands_paths_and_ids_are_redacted",
        "hook/test_hook.py::test_no_prompt_content_or_output_is_kept",
        "hook/test_hook.py::test_texts_are_kept_where_that_is_asked_for",
    ),
    "The kinds are `private-key`": (
        "test_security.py::test_it_lists_every_kind_of_secret_that_is_redacted",
    ),
    "Placeholders (`changeme`, `<your token>`, `${TOKEN}`, `ghp_xxxx…`) stay": (
        "core/test_redaction.py::test_what_is_no_secret_is_left_alone_in_these_surroundings",
    ),
    "Of a refused call the ledger keeps the size and the SHA-256 of its line": (
        "core/test_ledger.py::test_a_refused_call_is_entered_with_the_size_and_hash_of_its_line",
    ),
    "verifiers always show that something was erased": (
        "e2e/test_erase.py::test_every_verifier_reports_it_and_the_proofs_hold",
    ),
    "Directories that Colibri makes are 0700, the database, its `-wal`, `-shm` and `.lock` 0600": (
        "store/test_schema.py::test_no_file_is_open_to_others_whatever_the_umask",
    ),
    "do not fork the log: the servers stop writing and say why": (
        "e2e/test_replaced_database.py"
        "::test_the_next_writing_call_and_all_later_ones_are_refused_and_the_rest_still_works",
        "../torture/identity.py::run",
    ),
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
        "e2e/test_tamper_matrix.py::test_only_what_was_kept_outside_reveals",
    ),
    "runs nothing from the repository: git never reads its configuration": (
        "cli/test_hostile_repository.py::test_nothing_executes_whatever_the_repository_configures",
        "cli/test_hostile_repository.py::test_no_command_executes_what_the_repository_holds",
    ),
    "it follows no link in it, and writes hooks outside it only if you name that folder": (
        "cli/test_hostile_repository.py"
        "::test_a_link_is_named_and_never_followed_to_where_something_is_written",
        "cli/test_hostile_repository.py"
        "::test_no_setting_or_file_of_git_leads_what_is_written_out_of_the_repository",
        "cli/test_setup_git.py"
        "::test_a_folder_outside_that_the_repository_names_takes_the_users_word",
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
    "the `seq` and `head` of any receipt (which names only what is synced)": (
        "server/test_messages.py"
        "::test_the_receipt_is_the_exit_record_and_the_record_has_the_hash_of_the_text",
        "cli/test_status.py::test_a_head_is_handed_out_only_when_it_is_synced",
    ),
    "A server keeps one at each seal and when it ends": (
        "cli/test_heads.py::test_a_head_is_kept_after_a_seal_and_at_the_end",
    ),
    "`colibri heads accept --why TEXT` accepts it, once; every": (
        "cli/test_heads.py::test_two_copies_go_on_and_each_accepts_the_other_once",
        "cli/test_heads.py::test_a_server_that_finds_a_shorter_log_says_so_and_goes_on",
    ),
    "Nothing that others push can hide it": (
        "cli/test_unread_witnesses.py::test_it_hides_nothing_that_others_reveal",
        "cli/test_unread_witnesses.py"
        "::test_a_witness_that_cannot_be_read_is_named_and_nobody_can_tell",
    ),
    "an acceptance in git counts only for a log that contains": (
        "cli/test_witness_verdict.py::test_an_acceptance_survives_the_state_directory",
        "cli/test_witness_verdict.py::test_an_acceptance_that_is_not_of_this_log_accepts_nothing",
    ),
    "the records that are newer than any witness": (
        "e2e/test_tamper_matrix.py::test_what_is_newer_than_the_newest_witness_is_counted",
    ),
    "the verdict names the old one if the state directory has a head of it for the same path": (
        "cli/test_heads.py::test_another_log_at_the_same_path_is_named_and_no_fault",
    ),
    "Without a witness, a verification says so in `not_checked`": (
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
        "::test_a_session_that_only_planned_is_credited_with_creating_its_tasks",
        "web/test_whose_work.py::test_a_session_is_not_credited_with_what_its_task_depended_on",
        "web/test_whose_work.py::test_the_work_of_a_second_agent_is_not_in_the_report_of_the_first",
    ),
    "Reading another session's trail is not a sign of life and earns nobody credit": (
        "e2e/test_claims.py::test_a_reader_keeps_nothing_alive_and_is_credited_with_nothing",
    ),
    "Name an open session that is not its own, and so work in it": (
        "test_security.py::test_agents_that_share_a_session_are_distinguished",
    ),
    "The next agent's brief quotes it, shortened and attributed to its author": (
        "cli/test_brief_search.py::test_what_somebody_wrote_cannot_pass_for_a_line_of_the_brief",
        "cli/test_brief_search.py::test_the_brief_fits_a_terminal_and_is_safe_to_look_at",
    ),
    "A ledger or a git directory counts only if you own it": (
        "test_project.py::test_what_belongs_to_somebody_else_does_not_count",
        "test_project.py::test_links_of_a_work_tree_that_do_not_agree_lead_nowhere",
        "test_project.py::test_a_world_writable_directory_is_never_used",
        "test_project.py::test_the_home_directory_is_used_only_when_started_there",
    ),
    "secrets of well-known shapes in its arguments, in lists, objects and keys as well, are": (
        "e2e/test_secrets.py::test_no_text_of_a_tool_carries_a_secret_into_the_ledger",
        "core/test_redaction.py::test_it_looks_into_lists_and_objects_and_says_where",
        "core/test_redaction.py::test_keys_are_texts_too_and_none_takes_the_place_of_another",
    ),
    "Hashes, the ledger, the tools, the answer and the trail on stderr contain only that": (
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
        "core/test_redaction.py::test_the_corpus_is_as_large_as_documented",
        "core/test_redaction.py::test_what_is_no_secret_is_left_alone_in_these_surroundings",
    ),
    "Redaction takes linear time: patterns are bounded, long texts are scanned in pieces": (
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
    "with it go the arguments of the call that wrote it, every record of the task": (
        "store/test_erasure.py::test_a_record_goes_with_the_arguments_of_its_call",
        "store/test_erasure.py::test_a_text_goes_from_each_record_of_its_task_that_holds_it",
    ),
    "and every report of the same tool call": (
        "store/test_erasure.py::test_all_reports_of_one_tool_call_go_together",
        "store/test_erasure.py::test_what_a_hook_captured_of_a_call_goes_with_its_text",
    ),
    "says that no trace is left only if there are none": (
        "store/test_erasure.py::test_records_that_repeat_a_text_are_found",
        "e2e/test_erase.py::test_what_other_records_repeat_is_said_before_and_after",
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
        "cli/test_witness.py"
        "::test_a_log_that_cannot_be_copied_back_is_reported_and_the_checkpoint_kept",
        "hook/test_harmless.py::test_a_hook_stops_writing_where_the_log_cannot_be_copied_back",
    ),
    "unless the database, its `-wal` and its `-shm` are still the files that it opened": (
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
    "texts have their own limits, and so have the queues": (
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
        "test_patterns.py::test_the_verifier_of_the_web_takes_linear_time_as_a_whole",
        "e2e/test_lanes.py::test_a_ping_does_not_wait_for_texts_that_hurt_a_pattern",
        "../torture/text.py::run",
    ),
    "make invisible characters in stored text visible": (
        "core/test_visible.py::test_of_every_character_only_what_can_be_seen_is_shown_as_it_is",
        "verify/test_hostile.py::test_every_view_spells_out_characters_that_a_display_may_ignore",
    ),
}


@pytest.mark.parametrize("promise", PROMISES)
def test_each_promise_is_still_made_and_held(promise: str) -> None:
    assert promise in " ".join(TEXT.split())
    for holder in PROMISES[promise]:
        file, _, name = holder.partition("::")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


# The first words of every other sentence, by why it promises nothing that a test could hold.
NO_PROMISE = {
    "it asks the reader for something": (
        *("Please report it in private", "Say what you did", "Fixes are made on the main branch"),
    ),
    "it introduces what follows": (
        *("With `COLIBRI_DB_URL` the ledger is a schema", "Its roles, not only its programs"),
        *("Colibri keeps one ledger", "Its job is to keep that account intact"),
        *("source of trouble", "can", "what Colibri does", "**Not promised."),
        *("**Heads in your state directory.", "**Checkpoints in git.", "For that it takes a"),
        *("These are the attacks of `tests/e2e/test_tamper_matrix.py`", "What an agent cannot do:"),
        *("What an agent can do:", "Its limits:", "What is left:", "Agents share a ledger without"),
        *("Stored text is data",),
    ),
    "it names somebody, or what they can do": (
        *("accidents", "kill the process, cut the power", "a confused or misled agent"),
        *("call any tool with any arguments", "an agent that lies", "give any name"),
        *("an agent that has to satisfy", "call `colibri hook` in its shell"),
        *("a program of the same user", "read and write the database", "the owner of the machine"),
        *("do all of that", "the author of the repository", "leave links, git settings"),
        *("the sender of an evidence bundle", "craft hostile input", "another user of the machine"),
        *("read what file permissions allow", "Call itself anything else"),
        *("The client's name and version are", "Hold a task for as long as it makes calls"),
        *(
            "Take over a task that is still",
            "Write what is not true",
            "A model may still believe it",
        ),
        *("Anyone who can run a program as you", "Such a deed looks like any other"),
        *("An agent can change its host's hook settings", "A model may still obey a text"),
    ),
    "it says what is not promised": (
        *("It can append something untrue", "The owner of the schema and every superuser"),
        *("The connection is encrypted and the server's", "It does not compare the words under"),
        *("Whoever may connect to the database can", "What is outside of the schema, such as"),
        *("That what was recorded is true", "That everything an agent did is recorded"),
        *("Secrecy from other programs", "It cannot detect a log that was truncated"),
        *("A program that runs as you can edit", "Honest events cause that too"),
        *("So read the remarks of a good verdict", "Where the git host refuses forced pushes"),
        *("They are evidence, not proof", "An agent that removes the hooks and makes no further"),
        *("in a deed the SHA-256 and size", "the same text in other records"),
        *("Gemini CLI and Copilot CLI give their", "reports of hooks that still wait"),
        *("A digest does not protect a short", "A secret without a known shape"),
        *("Anyone who can guess the whole line", "Only calls and what hooks report are scanned"),
        *("What the client itself logs", "the headers: times", "project, assignee and states"),
        *(
            "in `call.exit` the SHA-256",
            "copies elsewhere: backups",
            "On macOS this is not checked",
        ),
    ),
}


def sentences() -> list[str]:
    """SECURITY.md in its smallest parts: sentences, items of lists, cells of tables.

    The table of attacks is compared with the tamper matrix instead.
    """
    text, _, rest = TEXT.partition("| attack |")
    found = []
    for block in re.split(r"\n\s*\n|\n(?=- |\|)", text + rest.partition("\n\n")[2]):
        one = " ".join(block.split()).removeprefix("- ")
        if one.startswith("|"):
            found += [cell.strip() for cell in one.strip("|").split(" | ")]
        elif one and not one.startswith("#"):
            found += re.split(r"(?<=[.?!]) (?=[A-Z`(])|(?<=\.\*\*) ", one)
    return [one for one in found if one.strip("-|: ")]


def test_every_sentence_is_held_by_a_test_or_known_to_promise_nothing() -> None:
    """A new sentence is added to PROMISES with its tests, or to NO_PROMISE with the reason."""
    every = sentences()
    assert len(every) > 140
    first = [words for group in NO_PROMISE.values() for words in group]
    unheld = [one for one in every if not any(promise in one for promise in PROMISES)]
    assert [one for one in unheld if not any(one.startswith(words) for words in first)] == []
    starting = {words: [one for one in unheld if one.startswith(words)] for words in first}
    assert {words: found for words, found in starting.items() if len(found) != 1} == {}


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
            roots = {name.partition(".")[0] for name in names if name != "urllib.parse"}
            assert not NETWORK & roots, file  # that one only takes texts apart


def _network(server: Server) -> tuple[int, bool]:
    """How many sockets a process has, and whether PostgreSQL's library is loaded."""
    process = Path(f"/proc/{server.process.pid}")
    if not process.exists():
        pytest.skip("needs /proc to see the descriptors of a process")
    opened = [str(entry.readlink()) for entry in (process / "fd").iterdir()]
    sockets = [one for one in opened if one.startswith("socket:")]
    return len(sockets), "libpq" in (process / "maps").read_text()


def test_only_a_server_that_was_given_a_url_connects(tmp_path: Path) -> None:
    from tests.support import postgres  # which skips the test if there is none

    def work(server: Server) -> tuple[int, bool]:
        server.data("task_create", title="a")
        server.data("audit_verify_chain")
        return _network(server)

    with Server(tmp_path, COLIBRI) as server:
        assert work(server) == (0, False)
    team: Any = {
        "COLIBRI_DB_SCHEMA": postgres.fresh_schema(),
        "COLIBRI_DB_URL": postgres.server().url(),
    }
    with Server(tmp_path, COLIBRI, **team) as server:
        sockets, is_loaded = work(server)
        assert (sockets > 0, is_loaded) == (True, True)


@pytest.mark.parametrize("lock", sorted((ROOT / "locks").glob("*.txt")), ids=lambda lock: lock.name)
def test_what_is_installed_is_pinned_by_hash(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert pins
    assert all(re.match(r"[\w.\[\]-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", pin) for pin in pins)


def test_agents_that_share_a_session_are_distinguished(tmp_path: Path) -> None:
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
