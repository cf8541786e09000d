#!/bin/sh
# The shared runtime stays small, needs only the system's libraries and shows only its C interface.
# Usage: check_shared_library.sh LIBRARY MAX_BYTES
set -eu
library=$1 max_bytes=$2 status=0
bytes=$(wc -c < "$library")
if [ "$bytes" -ge "$max_bytes" ]; then echo "size: $bytes bytes, expected fewer than $max_bytes"; status=1; fi
needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
[ -n "$needed" ] || { echo "no list of needed libraries"; status=1; }
for n in $needed; do
  case $n in
    libc.so.*|libm.so.*|libstdc++.so.*|libgcc_s.so.*|libpthread.so.*|libdl.so.*|ld-linux*) ;;
    *) echo "needs $n"; status=1 ;;
  esac
done
symbols=$(nm -D --defined-only "$library" | awk '{print $NF}')
echo "$symbols" | grep -q '^tw_model_load$' || { echo "tw_model_load is not exported"; status=1; }
if echo "$symbols" | grep -v '^tw_'; then echo "exports more than the C interface (above)"; status=1; fi
echo "$bytes bytes, needs: $(echo $needed)"
exit $status
