#!/usr/bin/env bash
# Remakes what the cost model starts from, from kept measurements, or measures them again.
# usage: tests/autotune/replay/run.sh [--measure COUNT [TASK ...] | --features | --base]
#   --measure    forms of each task's kernel, so many at most, for an hour or two: nothing else may run
#   --features   those of the kept forms, after a change of autotune/learn/features.cpp or of loop passes
#   --base       the base model alone; without any option: that, and the tables of results.md
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

build=$PWD/build tables=tests/autotune/replay/tables base=autotune/xgboost/base_model.cbor
seeds=20 count=
case "${1:-}" in
  "") ;;
  --measure) count=${2:?how many forms}; shift 2 ;;
  --features) count=0; shift ;;
  --base) seeds=0; shift ;;
  *) sed -n '3,6s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac

ninja -C "$build" measure_replay report_replay
if [ -n "$count" ]; then
  "$build/tests/autotune/measure_replay" "$tables" "$count" "$@"
  python3 - "$tables" <<'END'
import pathlib, sys, zipfile
# Deflated, with a fixed date: equal tables give equal files.
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.npz")):
    with zipfile.ZipFile(path) as old:
        entries = [(e.filename, old.read(e)) for e in old.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for name, data in entries:
            new.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
END
fi
report=$("$build/tests/autotune/report_replay" "$tables" "$seeds" "$base")
[ "$seeds" = 0 ] || printf '%s\n' "$report" > tests/autotune/replay/results.md
ninja -C "$build" tilewright_xgboost
