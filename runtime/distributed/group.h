// The processes that make up the ranks of a job, and how they come together, once or again and again.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/distributed/comm.h"
#include "runtime/distributed/store.h"

namespace tilewright::distributed {

class Group {
 public:
  virtual ~Group() = default;

  // Connects this process with the others; of an elastic group, anew with those that are there. steps_done: by this
  // process, -1 before it has a state: the rank that has done the most steps becomes rank 0. Errors: of a group that
  // is not elastic, ranks that do not come; stop() became true.
  virtual Status connect(int64_t steps_done, const std::function<bool()>& stop) = 0;
  // Of this process, since connect(); null before.
  virtual Comm* comm() = 0;
  // How many ranks there may be.
  virtual int most() const = 0;
  // May ranks be lost and come?
  virtual bool is_elastic() const = 0;
  // Processes wait to be ranks: connect() lets them in.
  virtual bool has_newcomers() = 0;

  // A text that all processes have in common: what one of them gave, as the group came about. Before connect().
  virtual Result<std::string> share(const std::string& name,
                                    const std::function<Result<std::string>()>& give) = 0;
};

// Ranks that are there from beginning to end.
std::unique_ptr<Group> make_fixed_group(std::unique_ptr<Transport> transport, CommOptions options);

struct ElasticOptions {
  int least = 1, most = 1;  // ranks
  // Of this process among those of its host: ranks that join together are numbered by it.
  int local_rank = 0;
  std::string prefix;   // of the job's keys in the store, which ends in '/'
  std::string address;  // ConnectOptions
  int64_t lease_seconds = 2;
  CommOptions comm;  // the rank is put behind `record_file`
  // Told of what a person should know, as that ranks are missing; from connect().
  std::function<void(const std::string&)> note;
};

// Ranks that meet in a store, connected by an engine that takes their numbers from there (gloo).
std::unique_ptr<Group> make_elastic_group(std::unique_ptr<Store> store, const Engine& engine,
                                          ElasticOptions options);

}  // namespace tilewright::distributed
