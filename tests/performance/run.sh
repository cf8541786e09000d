#!/usr/bin/env bash
# Measures: the machine, the kernels against it, and with --peers whole models against other engines.
# usage: tests/performance/run.sh [--peers] [--threads 1,2] [--only REGEX] [--seconds S]
#   --peers      also times the models of ../shared beside ONNX Runtime and OpenVINO (hours); refreshes README.md
#   --threads    numbers of threads to measure with, default 1,2
#   --only       only benchmarks and models with such a name; the tables go to build-bench, README.md stays
#   --seconds    least time for each kernel and each run of a model, default 0.3 and 2
# For figures to keep, the machine must do nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

peers=no threads=1,2 only=. seconds= results=tests/performance/results readme=README.md
usage() { sed -n '3,7s/^# //p' "${BASH_SOURCE[0]}"; }
while [ $# -gt 0 ]; do
  case "$1" in
    --peers) peers=yes ;;
    --threads | --only | --seconds)
      [ $# -gt 1 ] || { usage >&2; exit 2; }
      declare "${1#--}=$2"
      shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
build=$PWD/build-bench
if [ "$only" != . ]; then
  results=$build/results readme=
fi
mkdir -p "$build/results" "$results"

./tutorials/install_packages.sh --benchmarks
cmake -S . -B "$build" -G Ninja -DTILEWRIGHT_BENCHMARKS=ON --log-level=WARNING
NINJA_STATUS="[%f/%t] " cmake --build "$build" --target tilewright benchmark_kernels
cli=$build/frontends/cli/tilewright
devices=$("$cli" devices --measure)
echo "$devices"
cpu=$(sed -n 's/^cpu: //p' <<<"$devices")
name=$(sed -n 's/.* --cpu: //p' <<<"$devices")
report=(.venv/bin/python tests/performance/report.py --cpu "$cpu ($name)")
short=${name/znver/zen}

kernels=()
for n in ${threads//,/ }; do
  kernels+=("$build/results/kernels_$n.json")
  "$build/tests/performance/benchmark_kernels" "--threads=$n" "--benchmark_filter=$only" \
    "--benchmark_min_time=${seconds:-0.3}" --benchmark_out_format=json "--benchmark_out=${kernels[-1]}"
done
"${report[@]}" kernels "$results/kernels_$short.txt" "${kernels[@]}"

[ "$peers" = yes ] || exit 0
shared=${TILEWRIGHT_SHARED:-$PWD/../shared}
environments=${TILEWRIGHT_PEERS:-$HOME/.cache/tilewright-peers}
for peer in ort ov; do
  [ -x "$environments/$peer/bin/python" ] || "$shared/peers/setup.sh" "$peer"
done
models=()
for m in "$shared"/models/*/model.onnx; do
  m=$(dirname "$m")
  if [[ $(basename "$m") =~ $only ]]; then models+=("$m"); fi
done
for m in $("$environments/ort/bin/python" "$shared/models/make_standard_models.py" --list); do
  [[ $m =~ $only && $m != vgg16 ]] || continue  # half a gigabyte of one layer's weights
  [ -e "$build/models/$m.inputs.npz" ] ||
    "$environments/ort/bin/python" "$shared/models/make_standard_models.py" "$build/models" "$m" --check
  models+=("$build/models/$m.onnx")
done
[ ${#models[@]} -gt 0 ] || { echo "no model matches $only" >&2; exit 1; }
status=0
runs=()
int8=()  # those whose weights have 8 bits: relaxed numerics differ for no others
for m in "${models[@]}"; do
  if [[ $m == *int8* ]]; then int8+=("$m"); fi
done
for numerics in exact standard relaxed; do
  of=("${models[@]}")
  if [ "$numerics" = relaxed ]; then of=("${int8[@]}"); fi
  [ ${#of[@]} -gt 0 ] || continue
  stem=$build/results/models_$numerics
  python3 "$shared/peers/compare.py" --engines tilewright,ort,ov --threads "$threads" --rounds 2 \
    --seconds "${seconds:-2}" --tilewright "'$cli' bench --numerics $numerics" --json "$stem.json" \
    "${of[@]}" | tee "$stem.txt" || status=$?
  runs+=("$numerics=$stem")
done
"${report[@]}" models ${readme:+--readme "$readme"} --chart "$results/inference_cpu.svg" \
  "$results/inference_cpu.txt" "${runs[@]}"
exit "$status"
