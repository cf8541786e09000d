// tilewright db: what a tuning database holds, and keeping it in order.
#include <cstdio>
#include <iostream>

#include "autotune/database/database.h"
#include "frontends/cli/cli.h"

namespace tilewright::cli {

using autotune::Database;
using autotune::Record;

namespace {

void show(const Database& db) {
  std::printf("%10s %10s %7s %17s  %s\n", "usual us", "tuned us", "ratio", "95 % between",
              "kernel, on what");
  for (const Record& r : db.records()) {
    std::string state;
    if (!db.is_current(r))
      state = " (replaced by a later one)";
    else if (r.state != Record::State::kConfirmed)
      state = " (" + std::string(autotune::name(r.state)) + ")";
    std::printf("%10.1f %10.1f %7.3f %8.3f %8.3f  %s on %s%s\n", r.usual_us, r.tuned_us,
                r.tuned_us / r.usual_us, r.low, r.high, r.task.c_str(), r.device.c_str(),
                state.c_str());
  }
}

int check(const Database& db, const std::string& file) {
  for (const std::string& line : db.damaged()) std::cout << file << ": " << line << "\n";
  std::cout << db.records().size() << " records, " << db.damaged().size() << " damaged lines\n";
  return db.damaged().empty() ? kOk : kError;
}

}  // namespace

int db_command(const std::string& action, const std::vector<std::string>& files) {
  if (files.empty() || (action == "merge") != (files.size() > 1))
    return report_usage(action == "merge" ? "db merge INTO FROM...: expected two files or more"
                                          : "db " + action + " FILE: expected one file");
  auto db = Database::open(files[0]);
  if (!db.ok()) return report(db.error());
  if (action == "check") return check(*db, files[0]);
  if (action == "show") {
    show(*db);
    if (!db->damaged().empty())
      std::cerr << "tilewright: note: " << files[0] << ": " << db->damaged().size()
                << " lines were passed over; the first is " << db->damaged()[0] << "\n";
    return kOk;
  }
  if (action == "export") {
    std::cout << db->to_json();
    return kOk;
  }
  if (action == "prune") {
    const auto removed = db->prune();
    if (!removed.ok()) return report(removed.error());
    std::cout << *removed << " lines removed, " << db->records().size() << " records left\n";
    return kOk;
  }
  for (size_t i = 1; i < files.size(); ++i) {
    const auto from = Database::open(files[i]);
    if (!from.ok()) return report(from.error());
    const auto added = db->merge(*from);
    if (!added.ok()) return report(added.error());
    std::cout << files[i] << ": " << *added << " records added\n";
  }
  return kOk;
}

}  // namespace tilewright::cli
