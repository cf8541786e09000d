#include "autotune/database/database.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>

#include "runtime/core/open_file.h"
#include "runtime/core/write_file.h"

namespace tilewright::autotune {

namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

bool is_at(const Descriptor& file, const std::string& path) {
  struct stat mine{}, there{};
  return ::fstat(file.get(), &mine) == 0 && ::stat(path.c_str(), &there) == 0 &&
         mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

// The lock goes when the descriptor is closed.
Result<Descriptor> open_locked(const std::string& path) {
  TW_ASSIGN(Descriptor file, open_to_append(path, true));
  if (::flock(file.get(), LOCK_EX) != 0)
    return io_error(std::string("cannot be locked: ") + std::strerror(errno), path);
  return file;
}

}  // namespace

Result<Database> Database::open(const std::string& path) {
  Database db(path);
  std::error_code error;
  if (!fs::exists(path, error)) return db;
  TW_ASSIGN(std::string text, read_whole(path, kMostBytes));
  std::istringstream in(std::move(text));
  std::string line;
  for (size_t n = 1; std::getline(in, line); ++n) {
    if (line.empty()) continue;
    Result<Record> record = parse_line(line);
    if (record.ok())
      db.records_.push_back(std::move(*record));
    else
      db.damaged_.push_back("line " + std::to_string(n) + ": " + record.error().message);
  }
  return db;
}

const Record* Database::newest(const std::string& task, const std::string& device) const {
  const auto it = std::find_if(records_.rbegin(), records_.rend(), [&](const Record& r) {
    return r.task == task && r.device == device;
  });
  return it == records_.rend() ? nullptr : &*it;
}

const Record* Database::decided(const std::string& task, const std::string& device) const {
  const auto it = std::find_if(records_.rbegin(), records_.rend(), [&](const Record& r) {
    return r.state != Record::State::kProvisional && r.task == task && r.device == device;
  });
  return it == records_.rend() ? nullptr : &*it;
}

const Record* Database::find(const std::string& task, const std::string& device) const {
  const Record* r = decided(task, device);
  return r && r->state == Record::State::kConfirmed ? r : nullptr;
}

bool Database::is_current(const Record& r) const {
  return &r == newest(r.task, r.device) || &r == decided(r.task, r.device);
}

const Record* Database::find_like(const std::string& task, const std::string& family,
                                  const std::string& device) const {
  const Record* found = nullptr;
  int best = 0;
  for (const Record& r : records_) {
    const bool alike = !family.empty() && r.family == family;
    const int rank = r.task == task ? 3 : alike && r.device == device ? 2 : alike ? 1 : 0;
    if (rank > 0 && rank >= best && find(r.task, r.device) == &r) found = &r, best = rank;
  }
  return found;
}

Status Database::check_writable() const {
  const auto file = open_to_append(path_, true);
  return file.ok() ? Status() : Status(file.error());
}

Status Database::append(const Record& record) {
  Descriptor file;
  do {  // again, where prune() put another file in its place in the meantime
    TW_ASSIGN(file, open_locked(path_));
  } while (!is_at(file, path_));
  std::string line = to_line(record);
  // What a process that was killed left unfinished keeps its line to itself.
  char last = '\n';
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  if (size > 0 && ::pread(file.get(), &last, 1, size - 1) == 1 && last != '\n')
    line.insert(0, "\n");
  TW_RETURN_IF_ERROR(tilewright::append(file.get(), line, path_));
  if (::fsync(file.get()) != 0) {
    const std::string why = std::strerror(errno);
    (void)!::ftruncate(file.get(), size);
    return io_error("cannot be written: " + why, path_);
  }
  records_.push_back(record);
  return {};
}

Result<size_t> Database::merge(const Database& from) {
  size_t added = 0;
  std::set<std::string> known;
  for (const Record& r : records_) known.insert(to_line(r));
  for (const Record& r : from.records_) {
    if (!from.is_current(r) || !known.insert(to_line(r)).second) continue;
    TW_RETURN_IF_ERROR(append(r));
    ++added;
  }
  return added;
}

std::string Database::to_json() const {
  std::string text = "[";
  for (const Record& r : records_) {
    std::string line = to_line(r);
    line.pop_back();
    text += (text.size() > 1 ? ",\n " : "\n ") + line;
  }
  return text + "\n]\n";
}

Result<size_t> Database::prune() {
  // Whoever appends meanwhile waits, and opens the new file then.
  TW_ASSIGN(const Descriptor file, open_locked(path_));
  TW_ASSIGN(Database now, open(path_));
  std::vector<Record> kept;
  for (const Record& r : now.records_)
    if (now.is_current(r)) kept.push_back(r);
  const size_t before = now.records_.size() + now.damaged_.size();
  std::string lines;
  for (const Record& r : kept) lines += to_line(r);
  TW_RETURN_IF_ERROR(write_file(path_, lines));
  records_ = std::move(kept);
  damaged_.clear();
  return before - records_.size();
}

}  // namespace tilewright::autotune
