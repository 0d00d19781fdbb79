"""Cases that only `scripts/soak` runs: each takes long, and shows what another one shows too that is always run.

A name stands for a test with all its parameters, or with those in brackets.
"""

from __future__ import annotations

from typing import Final

FURTHER: Final[dict[str, tuple[str, ...]]] = {
    "contract/test_counts.py": (
        "test_counts_and_names_equal_what_is_stored[sqlite-1]",
        "test_counts_and_names_equal_what_is_stored[sqlite-2]",
        "test_counts_and_names_equal_what_is_stored[postgresql-0]",
        "test_counts_and_names_equal_what_is_stored[postgresql-2]",
    ),
    "contract/test_records.py": ("test_load_takes_many_ids[sqlite]",),
    "contract/test_spelling.py": (
        *(f"test_the_vocabulary_equals_what_is_used[sqlite-{seed}]" for seed in (1, 2, 3)),
        *(f"test_the_vocabulary_equals_what_is_used[postgresql-{seed}]" for seed in (0, 2, 3)),
    ),
    "contract/test_text_search.py": ("test_nasty_text_is_only_text[sqlite-typed37]",),
    "doors/test_exit_codes.py": (
        "test_a_reader_that_goes_is_no_error[list --json]",
        "test_a_reader_that_goes_is_no_error[show 99 --json]",
        "test_an_answer_that_cannot_be_written_is_said[list --json]",
        "test_an_answer_that_cannot_be_written_is_said[show 99 --json]",
    ),
    "doors/test_transfer_cli.py": ("test_the_daemon_imports_for_its_client",),
    "doors/test_upkeep.py": ("test_the_script_is_the_command",),
    "e2e/test_database_owners.py": (
        "test_each_database_has_a_daemon_of_its_own",
        "test_one_database_has_one_daemon_through_two_homes",
    ),
    "e2e/test_daemon_cli.py": (
        "test_a_polite_signal_ends_it_in_order",
        "test_an_owner_that_is_no_daemon_is_named",
        "test_its_home_is_taken_away_and_it_ends",
    ),
    "e2e/test_daemon_faults.py": (
        "test_a_home_that_cannot_be_written",
        "test_a_request_while_it_is_going",
        "test_a_stale_runtime_file",
        "test_asked_twice",
        "test_many_race_to_start",
        "test_no_space_to_start",
        "test_nothing_is_left_of_a_command",
        "test_one_that_hangs_is_named",
    ),
    "e2e/test_daemon_http.py": (
        "test_a_port_that_is_taken",
        "test_a_second_serve_is_refused",
        "test_mcp_over_http[auto-port]",
        "test_mcp_over_http[legacy-socket]",
        "test_open_streams_do_not_keep_it",
    ),
    "e2e/test_daemon_readiness.py": (
        "test_a_model_that_cannot_be_loaded",
        "test_it_stops_while_the_model_loads",
    ),
    "e2e/test_daemon_trust.py": (
        "test_the_token_lives_as_long_as_the_store",
        "test_something_is_in_the_sockets_place",
        "test_the_path_is_too_long_for_a_socket",
    ),
    "e2e/test_demo_through_daemon.py": ("test_two_clients_share_one_daemon",),
    "e2e/test_memory_processes.py": (
        "test_a_broken_installation_is_told_in_the_answer",
        "test_a_second_server_takes_over",
        "test_stdout_carries_only_the_protocol",
    ),
    "e2e/test_other_model.py": (
        "test_a_backup_is_made_beside_the_daemon_and_restored_in_its_place",
        "test_a_command_that_dies_stops_nothing",
        "test_a_daemon_refuses_what_it_cannot_load",
        "test_a_daemon_serves_no_client_of_another_model",
    ),
    "e2e/test_replica_faults.py": (
        "test_a_replica_that_ends_answers_what_was_begun",
        "test_kills_lose_nothing_that_was_acknowledged",
    ),
    "e2e/test_team_calls.py": ("test_the_model_notices_a_right_too_many[reads]",),
    "e2e/test_team_walk.py": ("test_a_graceful_end_loses_nothing",),
    "e2e/test_toolsets_stdio.py": ("test_sets_over_http[legacy]",),
    "engines/test_embedding.py": ("test_both_embedders_read_alike[document]",),
    "engines/test_model_files.py": tuple(
        f"test_weights_of_other_widths_serve[{kind}]" for kind in ("F16", "F64", "BF16")
    ),
    "engines/test_multilingual.py": ("test_both_runtimes_agree_over_a_unigram_tokenizer",),
    "lifecycle/test_consolidating.py": ("test_many_memories_are_several_transactions",),
    "operations/test_recall_filters.py": ("test_a_rare_category_gives_all_it_has",),
    "operations/test_rescan.py": ("test_the_command_ends_with_three_while_a_secret_is_in_sight",),
    "policy/test_entities.py": tuple(
        f"test_long_texts_come_to_an_end[{piece}]" for piece in ("`a", "de ", "Aa ", "a'", "x://(", "@a", "A-1", "a.")
    ),
    "store/test_backup.py": ("test_a_backup_that_is_not_whole_changes_nothing[another schema]",),
    "store/test_broken_index.py": (
        "test_a_damaged_folder_is_built_again[folder deleted]",
        "test_damage_under_an_open_index_is_survived[folder deleted]",
    ),
    "store/test_concurrency.py": (
        "test_forgetting_while_vectors_are_synced_leaves_nothing",
        "test_the_doctor_does_not_cry_wolf",
    ),
    "store/test_stored_late_interaction.py": ("test_many_memories_are_read_in_batches[sqlite]",),
    "test_agents_page.py": ("test_its_commands_run[1]", "test_its_commands_run[2]"),
    "test_gate.py": (
        "test_hostile_text_is_scanned_to_its_end[password=]",
        "test_hostile_text_is_scanned_to_its_end[token is ]",
    ),
}
