"""The kernels compile for a GPU, also where there is none to run them: the interpreter accepts more."""

import os
import subprocess
import sys
from pathlib import Path

FUSED = {"_tuned_decode_kernel", "_tuned_fold_kernel", "_verify_kernel", "_kv_replay_kernel"}


def test_every_kernel_compiles_for_sm_90_and_fuses_only_where_it_may(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("compile_for_gpu.py")],
        env=env | {"TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    built = [line.split() for line in done.stdout.splitlines()]
    assert len(built) == 32
    assert {name for name, fused in built if fused != "0"} == FUSED
    assert {name for name, _ in built} - FUSED == {
        "_flush_list_kernel",
        "_packed_decode_kernel",
        "_replay_decode_kernel",
        "_fold_kernel",
        "_conv_step_kernel",
        "_conv_prefill_kernel",
        "_conv_verify_kernel",
    }
