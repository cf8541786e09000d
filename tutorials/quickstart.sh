#!/usr/bin/env bash
# From a fresh Debian 12 to an answer: installs what is missing, builds the compiler and its runtime,
# compiles a digit classifier to native code, runs it on ten images and shows what it saw. Exits
# non-zero when an answer is wrong.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
start=$SECONDS
step() { printf '\n== %s (%d s)\n' "$1" $((SECONDS - start)); }

step "1/4 packages"
./tutorials/install_packages.sh

step "2/4 build"
cmake --preset release -DTILEWRIGHT_TESTS=OFF --log-level=WARNING
NINJA_STATUS="[%f/%t] " cmake --build build --target tilewright tilewright_runtime show_digits

tilewright=build/frontends/cli/tilewright
model=tutorials/models/digits-cnn
out=build/tutorials

step "3/4 compile and run $model/model.onnx"
mkdir -p "$out"
"$tilewright" compile "$model/model.onnx" -o "$out/digits-cnn.so"
"$tilewright" run "$out/digits-cnn.so" --inputs "$model/inputs.npz" --outputs "$out/answers.npz"
"$tilewright" bench "$out/digits-cnn.so" --inputs "$model/inputs.npz" --threads 1 --seconds 1 --json |
  tail -n 1 >"$out/bench.json"
ls -l "$out/digits-cnn.so" | awk '{ printf "%s, %.1f MB of native code and weights\n", $NF, $5 / 1e6 }'

step "4/4 what it saw"
"$out/show_digits" "$model/inputs.npz" "$out/answers.npz" "$model/labels.txt" "$out/bench.json"
printf '\nDone in %d s. Next: tutorials/README.md\n' $((SECONDS - start))
