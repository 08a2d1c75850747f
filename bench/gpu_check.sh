#!/usr/bin/env bash
# The kernel tests and the worked example, compiled on this machine's GPU. Prints what ran and on what:
#   bench/gpu_check.sh [PYTEST_OPTION...] | tee bench/results/gpu_check.log
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0

python3 - <<'PY'
import platform, torch, triton
import replaylife
name = torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA device"
print(f"{name}, CUDA {torch.version.cuda}, torch {torch.__version__}, triton {triton.__version__}, "
      f"Python {platform.python_version()}, replaylife {replaylife.__version__}")
PY
nvidia-smi --query-gpu=driver_version --format=csv,noheader | sed 's/^/driver /'

echo; echo "== kernel tests, worked example, faults, strategies, CUDA graph, verify windows, cache_finished_req regressions"
python3 -P -m pytest tests/kernels tests/lifecycle/test_multiturn.py tests/lifecycle/test_faults.py \
    tests/lifecycle/test_strategies.py tests/lifecycle/test_graph_mode.py tests/lifecycle/test_windows.py tests/regression -q -p no:cacheprovider --durations=5 "$@" || failed=1

echo; echo "== replaylife run multiturn on compiled Triton"
for gate in gdn kda; do
    for dtype in fp32 bf16 fp16; do
        python3 -m replaylife run multiturn --backend triton --device cuda --gate "$gate" \
            --state-dtype "$dtype" --quiet || failed=1
    done
done

echo; echo "== strategies, overlap and one captured CUDA graph on compiled Triton"
for scenario in extra-buffer-multiturn extra-buffer-lazy-multiturn align-multiturn overlap-multiturn mixed-batch \
    graph-mode; do
    python3 -m replaylife run "$scenario" --backend triton --device cuda --quiet || failed=1
done

echo; echo "== the witness, and the two finish faults, on compiled Triton"
python3 -m replaylife run multiturn --backend triton --device cuda --witness --quiet || failed=1
python3 -m replaylife run finish-donates-full-length donate-live-conv --backend triton --device cuda --quiet ||
    failed=1

[ "$failed" -eq 0 ] && echo "all passed" || echo "something failed"
exit "$failed"
