// How a process finds the other ranks of its job: from what its launcher says in environment variables.
#pragma once

#include <memory>
#include <string>

#include "runtime/distributed/group.h"

namespace tilewright::distributed {

struct JoinOptions {
  std::string engine;                            // empty: that of the launcher
  CommOptions comm;                              // `record_file` is followed by the rank
  std::function<void(const std::string&)> note;  // as ElasticOptions has it
};
// The name of the engine that the launcher of this process connects ranks by: mpirun and srun (openmpi, mpich),
// tilewright launch (gloo). Empty: there is no launcher.
std::string engine_of_launcher();

// The group that the launcher put this process in; null: there is no launcher, and it is the only process. Keeps to
// this rank's share of the machine's CPUs where the launcher left all of them to each of its ranks. Errors: an engine
// that the launcher has not started, or that cannot be opened; of MPI, ranks that do not come.
Result<std::unique_ptr<Group>> join_ranks(const JoinOptions& options);

}  // namespace tilewright::distributed
