"""`replaylife bench`: a table on a CPU, and what it refuses."""

import json

import pytest
from click.testing import CliRunner

from replaylife.cli.bench import render
from replaylife.cli.program import main


def run(*arguments):
    return CliRunner().invoke(main, ["bench", *arguments])


def test_a_small_table_comes_out_on_a_cpu():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("the GPU's table takes minutes: bench/decode.py")
    done = run("--gate", "gdn", "--state", "fp32", "--ring", "2", "--batch", "1", "--format", "json")
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert [line["name"] for line in record["lines"]] == [
        "packed (ours)",
        "replay (tuned)",
        "replay (reference)",
    ]
    assert all(0 < line["output_error"] < 2e-6 for line in record["lines"])
    assert set(record["missing"]) <= {"sglang", "flash-linear-attention"}


def test_a_folder_that_is_not_there_is_refused():
    done = run("--sglang", "nowhere")
    assert done.exit_code == 2
    assert "--sglang nowhere: no such folder" in done.stderr


def test_tuning_needs_a_gpu_and_a_new_file(monkeypatch, tmp_path):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    done = run("--tune", str(tmp_path / "tiles.json"))
    assert (done.exit_code, "no GPU" in done.stderr) == (2, True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    (tmp_path / "tiles.json").write_text("{}")
    done = run("--tune", str(tmp_path / "tiles.json"))
    assert (done.exit_code, "nothing is overwritten" in done.stderr) == (2, True)


def test_a_written_table_reads_as_what_was_measured():
    table = {"measured_on": {"card": "x"}, "decode": [{"a": 1}, {"a": 2}], "fold": []}
    assert json.loads(render(table)) == table
    assert render(table).count("\n") < 12
