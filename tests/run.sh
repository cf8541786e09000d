#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests; the last line counts them.
# usage: tests/run.sh [--full] [--asan | --ubsan | --tsan] [ctest arguments, e.g. -R layering]
#   --full   every standard model in all its variants as well (hours)
#   --asan, --ubsan   the same tests under that sanitizer; --tsan: the runtime's tests under ThreadSanitizer
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=release build=build full=no options=() selection=()
while [ $# -gt 0 ]; do
  case "$1" in
    --full) full=yes ;;
    --asan | --ubsan) preset=${1#--} build=build-${1#--} ;;
    --tsan) preset=tsan build=build-tsan options=(-DTILEWRIGHT_ONLY_RUNTIME=ON) ;;
    -h | --help) sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) break ;;
  esac
  shift
done
[ "$full" = yes ] || selection+=(-LE '^full$')

./tutorials/install_packages.sh --tests
cmake --preset "$preset" -DTILEWRIGHT_TESTS=ON "${options[@]}" --log-level=WARNING
NINJA_STATUS="[%f/%t] " cmake --build "$build"

# Every test compiles what it runs; those of the cache say where it is.
export TILEWRIGHT_CACHE_BYTES=0
results=$build/test_results.xml
rm -f "$results"
status=0
ctest --test-dir "$build" --parallel "$(nproc)" --output-on-failure --output-junit "$PWD/$results" \
  "${selection[@]}" "$@" || status=$?
python3 tests/tools/count_results.py "$results" "$status"
