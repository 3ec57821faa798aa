#!/usr/bin/env bash
# All that a borrowed GPU still has to tell, in ten minutes: scripts/gpu/lease.sh OUT [PYTHON]
#
# Owns: the order, by worth, and a limit of time for each step; one log a step in the folder OUT.
# Never: sets up. PYTHONPATH and the packages are those of README.md beside it.
set -u
out=$1 python=${2:-python3} here=$(dirname "$0")/../..
cd "$here" || exit 2
mkdir -p "$out"
export TRITON_INTERPRET=0 OMP_NUM_THREADS=4 PYTHONUNBUFFERED=1 PYTHONFAULTHANDLER=1

# The log has the command, its output, its exit status and its seconds; SIGABRT shows where it hangs.
step() {
  local log="$out/$1.log" limit=$2 begun=$SECONDS
  shift 2
  echo "\$ $*" > "$log"
  timeout --signal=ABRT --kill-after=10 "$limit" "$@" >> "$log" 2>&1
  echo "exit status $?, $((SECONDS - begun)) s" >> "$log"
  echo "== $log"; tail -n 12 "$log"
}

troth=("$python" -m troth_cli)
mapfile -t tests < <(grep -rl "pytest\.mark\.cuda" tests --include="test_*.py")

nvidia-smi > "$out/card.log" 2>&1
step equality 120 "$python" scripts/gpu/equality.py
# The reference is one thread of the processor: it computes beside all that follows.
OMP_NUM_THREADS=1 step calibrate 560 "${troth[@]}" calibrate --config configs/25m.toml \
  --set train.sequences_per_payload=16 --device cuda --rounds 20 --json &
step tests 150 "$python" -m pytest -q -m cuda -p no:pytest_anchorpy "${tests[@]}"
step bench 180 "${troth[@]}" bench --sizes 1M,7M,30M,124M,350M --device cuda --repeats 3
step launches 60 "$python" scripts/gpu/launches.py
# In one process: what takes so long shows in the log.
TORCHINDUCTOR_COMPILE_THREADS=1 step bf16 200 "$python" scripts/gpu/passes.py --sequences 8 --precisions bf16 &
step memory 90 "$python" scripts/bench/memory.py --device cuda --rounds 4
wait
