"""``scenarios``, ``faults``, ``invariants`` and ``explain``: what they print comes from the code itself."""

from __future__ import annotations

import json

import pytest
from click.testing import Result

from replaylife.cli.locate import shipped_scenarios
from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.invariants import INVARIANTS
from replaylife.lifecycle.strategies import STRATEGIES
from replaylife.reference import MEANINGS, entries

from .command import invoke, python, spawn

LISTS = {"scenarios": list(shipped_scenarios()), "faults": list(FAULTS), "invariants": list(INVARIANTS)}
IDS = sorted({*shipped_scenarios(), *FAULTS, *INVARIANTS, *STRATEGIES})


def parsed(result: Result) -> object:
    assert result.exit_code == 0
    return json.loads(result.stdout)


@pytest.mark.parametrize("kind", LISTS)
def test_a_list_has_every_entry_as_text_and_as_one_json_document(kind: str) -> None:
    assert len(LISTS[kind]) >= 18
    document = parsed(invoke(kind, "--format", "json"))
    assert isinstance(document, list)
    assert [entry["id"] for entry in document] == LISTS[kind]
    lines = invoke(kind).stdout.splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == LISTS[kind]


@pytest.mark.parametrize("columns", [50, 80])
@pytest.mark.parametrize("kind", LISTS)
def test_a_list_fits_the_screen(kind: str, columns: int) -> None:
    lines = invoke(kind, columns=columns).stdout.splitlines()
    assert [line for line in lines if len(line) > columns and "https://" not in line] == []
    assert [line for line in lines if line != line.rstrip()] == []


def test_words_choose_what_has_all_of_them() -> None:
    chosen = invoke("faults", "cursor", "TensorRT").stdout
    assert "cursor-survives-reuse\n" in chosen
    assert "retract-keeps-cursor" not in chosen
    one = parsed(invoke("scenarios", "kda", "--format", "json"))
    assert isinstance(one, list)
    assert [entry["id"] for entry in one] == ["kda-multiturn", "track-never-written"]


def test_words_that_nothing_has_are_an_error() -> None:
    result = invoke("faults", "cursor", "nonesuch")
    assert result.exit_code == 2
    assert "no fault has 'cursor' and 'nonesuch' in it" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("id", IDS)
def test_every_id_is_explained_within_80_columns(id: str) -> None:
    result = invoke("explain", id)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{id}  ")
    lines = result.stdout.splitlines()
    copied = ("see it", "file")
    assert [ln for ln in lines if len(ln) > 80 and "https://" not in ln and not ln.startswith(copied)] == []
    document = parsed(invoke("explain", id, "--format", "json"))
    assert isinstance(document, dict)
    assert {meaning["kind"] for meaning in document["meanings"]} == {
        kind for kind, (names, _) in MEANINGS.items() if id in names()
    }


def test_an_explanation_of_a_fault_has_all_that_the_catalogue_says() -> None:
    for fault in FAULTS.values():
        words = " ".join(invoke("explain", fault.id).stdout.split())
        for part in (
            fault.title,
            fault.mechanism,
            fault.source,
            fault.right_value,
            *fault.ledger,
            *fault.numeric,
        ):
            assert " ".join(part.split()) in words


def test_an_invariant_names_exactly_the_faults_that_trip_it() -> None:
    document = parsed(invoke("explain", "ring-owned", "--format", "json"))
    assert isinstance(document, dict)
    (meaning,) = document["meanings"]
    assert meaning["tripped_by"] == [f.id for f in FAULTS.values() if "ring-owned" in f.ledger]
    assert meaning["scenario"] == "phantom-record-per-window", "the shortest of theirs"


@pytest.mark.parametrize("kind", ["fault", "invariant"])
def test_the_command_of_an_explanation_shows_it(kind: str) -> None:
    shown = 0
    for entry in entries(kind):
        if "--backend none" not in entry.command:
            continue
        result = invoke(*entry.command.split()[1:])
        assert result.exit_code == 0
        assert "violated, as expected" in result.stdout
        wanted = entry.ledger if entry.kind == "fault" else (entry.id,)
        assert all(invariant in result.stdout for invariant in wanted)
        shown += 1
    assert shown >= 17


@pytest.mark.parametrize(
    ("id", "nearest"),
    [
        ("cursor-survive-reuse", "'cursor-survives-reuse' (fault)"),
        ("key-match-state", "'key-matches-state' (invariant)"),
        ("no-buffer", "'no_buffer' (strategy)"),
        ("multitrun", "'multiturn' (scenario)"),
        ("curser", "'cursor-advances-per-layer' (fault)"),
        ("xyzzy", "see replaylife faults"),
    ],
)
def test_an_unknown_id_names_the_nearest_of_any_kind(id: str, nearest: str) -> None:
    result = invoke("explain", id)
    assert result.exit_code == 2
    assert nearest in result.stderr
    assert result.stdout == ""


def test_colour_comes_only_where_it_is_wanted() -> None:
    colour = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    assert "\x1b" not in spawn("explain", "no_buffer").stdout
    assert "\x1b[1m" in spawn("explain", "no_buffer", **colour).stdout
    assert "\x1b[36m" not in spawn("explain", "no_buffer", NO_COLOR="1", **colour).stdout


@pytest.mark.parametrize("args", [["scenarios"], ["faults"], ["invariants"], ["explain", "ring-stores-v"]])
def test_the_reference_does_not_import_torch(args: list[str]) -> None:
    code = f"import sys\nfrom replaylife.cli import main\nmain({args!r}, standalone_mode=False)\n"
    code += "print(*sys.modules, file=sys.stderr)"
    modules = set(python("-c", code).stderr.split())
    assert "replaylife.lifecycle.faults" in modules
    assert modules.isdisjoint({"torch", "triton"})


# -- completion ----------------------------------------------------------------------------------------


def completed(words: str, shell: str = "bash") -> list[str]:
    """What a shell offers after ``words``, by click's own protocol."""
    env = {
        "_REPLAYLIFE_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": words.split(" ")[-1] if shell == "fish" else str(len(words.split(" ")) - 1),
    }
    code = "from replaylife.cli import main; main(prog_name='replaylife')"
    return python("-c", code, env=env).stdout.split()


def test_commands_are_completed() -> None:
    assert completed("replaylife expla") == ["plain,explain"]
    assert completed("replaylife zz") == []


def test_scenario_names_are_completed_and_files_where_none_fits() -> None:
    assert completed("replaylife run multi") == ["plain,multiturn-fold", "plain,multiturn"]
    assert completed("replaylife run multiturn multiturn-") == ["plain,multiturn-fold"]
    assert completed("replaylife run ./my") == ["file,./my"]


def test_fault_ids_are_completed() -> None:
    assert completed("replaylife run multiturn --fault free") == ["plain,free-twice"]
    assert completed("replaylife run multiturn --fault zz") == []


def test_everything_that_explain_knows_is_completed() -> None:
    assert completed("replaylife explain cursor-r") == ["plain,cursor-reset-on-reuse"]
    assert {line.partition(",")[2] for line in completed("replaylife explain ")} == set(IDS)


def test_zsh_and_fish_show_what_an_id_is() -> None:
    assert completed("replaylife explain no_", "zsh") == ["plain", "no_buffer", "strategy"]
    assert completed("replaylife explain no_", "fish") == ["plain,no_buffer", "strategy"]


def test_completion_does_not_import_torch_or_the_schema() -> None:
    code = "import sys\nfrom replaylife.cli.complete import complete_ids\n"
    code += "print(len(complete_ids(None, None, '')), *sys.modules)"
    number, *modules = python("-c", code).stdout.split()
    assert int(number) == len(IDS)
    assert set(modules).isdisjoint({"torch", "triton", "pydantic", "ruamel"})
