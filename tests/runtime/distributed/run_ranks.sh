#!/bin/sh
# Runs a program on several ranks of this machine: run_ranks.sh ENGINE RANKS PROGRAM. Exit 77: the engine is not here.
engine=$1 ranks=$2 program=$3
case $engine in
  openmpi) launcher="mpirun.openmpi --oversubscribe" ;;
  mpich) launcher=mpirun.mpich ;;
  *) echo "no engine $engine" >&2; exit 2 ;;
esac
if ! command -v "${launcher%% *}" >/dev/null; then
  echo "skipped: no ${launcher%% *}"
  exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Containers refuse to copy from one process to another.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
# Plugins of MPI libraries are unloaded with memory that they never free.
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
exec $launcher -n "$ranks" "$program" "$engine"
