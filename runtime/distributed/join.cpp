#include "runtime/distributed/join.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace tilewright::distributed {

namespace {

constexpr std::chrono::seconds kLongestStart{60}, kStoreCall{2};
constexpr int kMostRanks = 1 << 20;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}
// A whole number from `least` on; -1: there is none.
int number(const char* name, int least = 0) {
  const std::string text = variable(name);
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  return text.empty() || *end || value < least || value > kMostRanks ? -1 : static_cast<int>(value);
}
int first_number(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const int n = number(name); n >= 0) return n;
  return -1;
}

// Neighbouring CPUs for each of the machine's ranks, unless somebody has chosen already.
void take_share_of_cpus() {
  const int local = first_number({"TILEWRIGHT_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                  "MPI_LOCALRANKID", "SLURM_LOCALID"}),
            locals = first_number({"TILEWRIGHT_LOCAL_RANKS", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                   "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"});
  cpu_set_t given;
  CPU_ZERO(&given);
  if (local < 0 || locals < 2 || local >= locals || sched_getaffinity(0, sizeof given, &given) != 0)
    return;
  std::vector<int> cpus;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &given)) cpus.push_back(c);
  const auto n = static_cast<int>(cpus.size());
  // Fewer than the machine has: the launcher binds ranks itself.
  if (n < std::max(2, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)))) return;
  cpu_set_t share;
  CPU_ZERO(&share);
  if (locals > n)
    CPU_SET(cpus[static_cast<size_t>(local % n)], &share);
  else
    for (int k = local * n / locals; k < (local + 1) * n / locals; ++k)
      CPU_SET(cpus[static_cast<size_t>(k)], &share);
  sched_setaffinity(0, sizeof share, &share);
}

}  // namespace

std::string engine_of_launcher() {
  if (!variable("TILEWRIGHT_STORE").empty()) return "gloo";
  if (number("OMPI_COMM_WORLD_SIZE", 1) > 0) return "openmpi";
  if (number("PMI_SIZE", 1) > 0) return "mpich";
  if (number("SLURM_NTASKS", 2) > 0 && !variable("PMIX_RANK").empty()) return "openmpi";
  return "";
}

Result<std::unique_ptr<Group>> join_ranks(const JoinOptions& options) {
  const std::string started = engine_of_launcher();
  if (started.empty() && options.engine.empty()) return std::unique_ptr<Group>();
  if (started.empty())
    return invalid("distributed.engine is " + options.engine +
                   ", but no launcher started this process; see mpirun, srun or tilewright launch");
  if (!options.engine.empty() && options.engine != started)
    return invalid("distributed.engine is " + options.engine +
                   ", but the launcher of this process connects ranks by " + started);
  take_share_of_cpus();
  TW_ASSIGN(const Engine* engine, open_engine(started));
  if (started != "gloo") {
    TW_ASSIGN(std::unique_ptr<Transport> transport,
              engine->connect({.deadline = Clock::now() + kLongestStart}));
    CommOptions comm = options.comm;
    if (!comm.record_file.empty()) comm.record_file += std::to_string(transport->rank());
    return make_fixed_group(std::move(transport), std::move(comm));
  }
  ElasticOptions elastic{.least = number("TILEWRIGHT_LEAST", 1),
                         .most = number("TILEWRIGHT_MOST", 1),
                         .local_rank = std::max(number("TILEWRIGHT_LOCAL_RANK"), 0),
                         .prefix = "tilewright/" + variable("TILEWRIGHT_JOB") + "/",
                         .comm = options.comm,
                         .note = options.note};
  if (elastic.most < 1) return invalid("TILEWRIGHT_MOST says no number of ranks");
  elastic.least = std::clamp(elastic.least, 1, elastic.most);
  TW_ASSIGN(elastic.address,
            address_towards(variable("TILEWRIGHT_STORE"), Clock::now() + kLongestStart));
  TW_ASSIGN(std::unique_ptr<Store> store, connect_store(variable("TILEWRIGHT_STORE"), kStoreCall));
  return make_elastic_group(std::move(store), *engine, std::move(elastic));
}

}  // namespace tilewright::distributed
