"""`replaylife sweep`: a table, CSV, JSON or a figure of a log played at many points."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from replaylife.lifecycle.workload.point import Point

from .command import invoke

SHORT = ("sweep", "--limit", "2", "--slots", "64", "--jobs", "1")
TWO = ("--finish", "truncate", "--finish", "fold")


def test_the_table_has_a_line_a_point_and_only_the_columns_that_vary() -> None:
    done = invoke(*SHORT, *TWO)
    assert done.exit_code == 0
    above, header, *rows = done.stdout.splitlines()
    assert above.split()[0] == "hit"
    assert header.split()[:2] == ["finish", "rate"]
    assert [row.split()[0] for row in rows[:2]] == ["truncate", "fold"]
    assert rows[2:] == ["", "violations: 0"]
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_what_was_not_checked_is_not_called_clean() -> None:
    done = invoke(*SHORT, "--no-check")
    assert done.stdout.splitlines()[-1] == "violations: not checked (--no-check)"


def test_csv_and_json_say_the_same(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out.jsonl"))
    told = json.loads(invoke(*SHORT, *TWO, *out, "--format", "json").stdout)
    rows = list(csv.DictReader(io.StringIO(invoke(*SHORT, *TWO, *out, "--format", "csv").stdout)))
    assert [row["finish"] for row in rows] == [one["point"]["finish"] for one in told] == ["truncate", "fold"]
    assert [int(row["folds"]) for row in rows] == [one["totals"]["folds"] for one in told]
    assert set(Point.names()) <= set(rows[0])
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3, "the second sweep played nothing"


def test_a_figure_is_drawn_where_matplotlib_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra `plot`")
    asked = ("--ring", "4", "--ring", "16", "--out", str(tmp_path / "out.jsonl"), "--metric", "folds")
    for suffix in (".svg", ".png"):  # the second is drawn from what is on file
        path = tmp_path / f"figure{suffix}"
        assert invoke(*SHORT, *TWO, *asked, "--plot", str(path)).exit_code == 0
        assert path.stat().st_size > 1_000
    text = (tmp_path / "figure.svg").read_text()
    assert "<!-- ring -->" in text
    assert "<!-- folds -->" in text
    assert "<!-- finish truncate -->" in text


def test_bad_lines_of_a_log_are_told_with_file_and_line(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("foo\n")
    done = invoke("sweep", str(log), "--jobs", "1")
    assert done.exit_code == 2
    assert f"{log}:1: no JSON" in done.stderr


def test_an_unknown_ending_and_a_results_file_of_another_kind_are_one_message(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("{}\n")
    done = invoke(*SHORT, "--out", str(tmp_path / "out.jsonl"))
    assert (done.exit_code, "out.jsonl:1: " in done.stderr) == (2, True)
    pytest.importorskip("matplotlib", reason="needs the extra `plot`")
    done = invoke(*SHORT, "--plot", str(tmp_path / "figure.nothing"))
    assert done.exit_code == 2
    assert "--plot" in done.stderr
    assert "internal" not in done.stderr


def test_a_file_that_is_not_there_is_told_by_what_it_was_for(tmp_path: Path) -> None:
    done = invoke("sweep", str(tmp_path / "nowhere.jsonl"), "--jobs", "1")
    assert (done.exit_code, "nowhere.jsonl: No such file" in done.stderr) == (2, True)
    assert "expected a request log" in done.stderr
    done = invoke(*SHORT, "--out", str(tmp_path / "no" / "out.jsonl"))
    assert (done.exit_code, "expected a file that can be written" in done.stderr) == (2, True)


def test_a_cluster_without_the_extra_or_without_an_answer_is_one_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("replaylife.cli.sweep.find_spec", lambda _: None)
    done = invoke(*SHORT, "--cluster", "tcp://127.0.0.1:1")
    assert done.exit_code == 2
    assert "--cluster needs distributed: pip install 'replaylife[cluster]'" in done.stderr
