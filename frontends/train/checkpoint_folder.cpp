#include "frontends/train/checkpoint_folder.h"

#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "runtime/core/open_file.h"
#include "runtime/core/temporary_folder.h"

namespace tilewright::train {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPrefix = "step-", kSuffix = ".npz";

// Nothing where the name is that of no checkpoint.
std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const char *from = name.data() + kPrefix.size(), *to = name.data() + name.size() - kSuffix.size();
  int64_t step = 0;
  const auto [end, error] = std::from_chars(from, to, step);
  if (error != std::errc() || end != to || step < 1) return std::nullopt;
  return step;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename());
  return names;
}

}  // namespace

Result<std::unique_ptr<CheckpointFolder>> CheckpointFolder::open(const fs::path& folder,
                                                                 bool shared) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return io_error("cannot be made: " + error.message(), folder.string());
  TW_ASSIGN(Descriptor lock, open_folder(folder.string()));
  std::unique_ptr<CheckpointFolder> opened(new CheckpointFolder(folder, std::move(lock)));
  // A file system without locks is used without one.
  if (::flock(opened->lock_.get(), (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0 &&
      errno == EWOULDBLOCK)
    return invalid("another run writes its checkpoints there", folder.string());
  // Making a temporary folder also removes those that killed runs left there.
  if (const auto writable = TemporaryFolder::make(folder.string()); !writable.ok())
    return io_error("cannot be written to: " + writable.error().message, folder.string());
  return opened;
}

CheckpointFolder::~CheckpointFolder() {
  if (writing_.valid()) writing_.wait();
}

fs::path CheckpointFolder::file(int64_t step) const {
  char name[48];
  std::snprintf(name, sizeof name, "step-%09lld.npz", static_cast<long long>(step));
  return folder_ / name;
}

std::vector<int64_t> CheckpointFolder::steps() const {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in(folder_))
    if (const auto step = step_of(name); step && file(*step).filename() == name)
      steps.push_back(*step);
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

Result<std::optional<Checkpoint>> CheckpointFolder::newest(
    const std::function<void(const std::string&)>& note) const {
  std::vector<std::string> problems;
  for (const int64_t step : steps()) {
    Result<Checkpoint> read = read_checkpoint(file(step));
    if (read.ok() && read->step != step)
      read = invalid("holds the state after " + std::to_string(read->step) + " steps",
                     file(step).string());
    if (read.ok()) {
      for (const std::string& p : problems) note(p);
      return std::optional(std::move(*read));
    }
    problems.push_back(read.error().to_string());
  }
  if (problems.empty()) return std::optional<Checkpoint>();
  Error none = invalid("no checkpoint is whole; --fresh begins anew", folder_.string());
  none.notes = std::move(problems);
  return none;
}

Status CheckpointFolder::remove_all() {
  for (const int64_t step : steps()) {
    std::error_code error;
    fs::remove(file(step), error);
    if (error) return io_error("cannot be removed: " + error.message(), file(step).string());
  }
  return {};
}

Status CheckpointFolder::save(Checkpoint checkpoint, std::function<Status()> first) {
  TW_RETURN_IF_ERROR(wait());
  writing_ =
      std::async(std::launch::async,
                 [this, c = std::move(checkpoint), first = std::move(first)]() mutable -> Status {
                   return catch_failures([&]() -> Status {
                     const int64_t step = c.step;
                     TW_RETURN_IF_ERROR(first());
                     TW_RETURN_IF_ERROR(write_checkpoint(file(step), std::move(c)));
                     keep_last_two(step);
                     return {};
                   });
                 });
  return {};
}

Status CheckpointFolder::status() {
  using namespace std::chrono_literals;
  return writing_.valid() && writing_.wait_for(0s) == std::future_status::ready ? wait() : Status();
}

Status CheckpointFolder::wait() { return writing_.valid() ? writing_.get() : Status(); }

// Newer ones, which were damaged when the run went on from an older one, are written anew in time.
void CheckpointFolder::keep_last_two(int64_t step) const {
  bool kept = false;
  for (const int64_t other : steps()) {
    if (other >= step) continue;
    std::error_code ignored;
    if (kept) fs::remove(file(other), ignored);
    kept = true;
  }
}

}  // namespace tilewright::train
