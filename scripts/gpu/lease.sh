#!/usr/bin/env bash
# What a borrowed GPU still has to tell: scripts/gpu/lease.sh OUT measure|calibrate [PYTHON]
#
# Owns: the order, by worth, and a limit of time for each step, ten minutes in all at most; a log
# for each step in the folder OUT.
# Never: sets up. PYTHONPATH and the packages are those of README.md beside it.
set -u
if [[ ${2:-} != measure && ${2:-} != calibrate ]]; then
  echo "expected a folder, then measure or calibrate; found: $*" >&2
  exit 2
fi
out=$(realpath -m "$1") what=$2 python=${3:-python3}
cd "$(dirname "$0")/../.." || exit 2
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

measure() {
  local tests
  mapfile -t tests < <(grep -rl "pytest\.mark\.cuda" tests --include="test_*.py")
  step equality 150 "$python" scripts/gpu/equality.py &
  step tests 150 "$python" -m pytest -q -m cuda -p no:pytest_anchorpy "${tests[@]}"
  wait
  # Timings are taken alone.
  step bench 180 "$python" -m troth_cli bench --sizes 1M,7M,30M,124M,350M --device cuda --repeats 3
  step launches 60 "$python" scripts/gpu/launches.py
  step memory 90 "$python" scripts/bench/memory.py --device cuda --rounds 4 &
  # In one process: what takes so long shows in the log.
  TORCHINDUCTOR_COMPILE_THREADS=1 step bf16 180 "$python" scripts/gpu/passes.py --sequences 8 \
    --precisions bf16
  wait
}

calibrate() {
  OMP_NUM_THREADS=1 step calibrate 580 "$python" -m troth_cli calibrate --config configs/25m.toml \
    --set train.sequences_per_payload=16 --device cuda --rounds 20 --json
}

nvidia-smi > "$out/card.log" 2>&1
"$what"
