// Compiled models in a cache: found by the model's bytes, the shapes, the options, the machine and the
// build of the compiler, and loaded as shared objects. So the second start of a model compiles nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontends/compiler/compiler.h"

namespace tilewright {

// What compiling says besides: see build_graph.
struct KeptAbout {
  std::vector<std::string> specialised, notes;
};

class KeptExecutable {
 public:
  // Of one binding. All are borrowed. Where options.cache is null, or the compiler does not know its
  // build, nothing is found or kept.
  KeptExecutable(const OnnxModel& model, const Binding& binding, const CompileOptions& options);

  // Null: there is none, or it can't be loaded.
  std::shared_ptr<Executable> find(KeptAbout& about) const;
  // Of the programs that follow, a variant each; in memory where they can't be kept.
  Result<std::shared_ptr<Executable>> assemble(std::vector<ir::Program> programs,
                                               const codegen::AssembleOptions& options,
                                               const KeptAbout& about) const;

 private:
  // Of the executable for these values of the inputs that it is specialised to.
  std::string name_for(const std::vector<std::string>& specialised) const;

  const Binding& binding_;
  cache::FileCache* cache_;
  std::string name_;  // of what is said about it; empty: nothing is kept
};

}  // namespace tilewright
