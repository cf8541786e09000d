// The last runs of tuning: which of the forms that rounds found hold up, together.
#pragma once

#include <random>

#include "autotune/kernel_entries.h"
#include "autotune/kernel_readers.h"
#include "autotune/measure/placements.h"

namespace tilewright::autotune {

// Sets TunedKernel::best, improved, withdrawn and gain. What is left at the end was measured as it is,
// all of it together (b) against the usual forms (a): whole runs, which are faster, or nothing is left.
// measure: PairedOptions::measure.
Result<Comparison> confirm_kernels(KernelEntries& entries, const ModelCompiler& compiler,
                                   const Plan& plan, InputSets inputs, const KernelReaders& readers,
                                   const RunInTurn& measure, std::mt19937& random);

}  // namespace tilewright::autotune
