// The kinds of data that a job may name, each in a file of its own. Everything is checked when it is
// opened: types, shapes, lengths, and that targets are classes of the model. Reading a batch cannot
// fail then.
#pragma once

#include "frontends/train/data.h"

namespace tilewright::train {

// Rows of the arrays of an .npz (arrays.cpp).
Result<std::unique_ptr<Dataset>> open_arrays(const DataJob& job, const Wanted& wanted);
// Pieces of a text, one for each byte where one begins (tokens.cpp).
Result<std::unique_ptr<Dataset>> open_tokens(const DataJob& job, const Wanted& wanted);
// Rows of a sparse text file, with their labels (libsvm.cpp).
Result<std::unique_ptr<Dataset>> open_libsvm(const DataJob& job, const Wanted& wanted);

}  // namespace tilewright::train
