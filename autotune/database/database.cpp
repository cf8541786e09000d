#include "autotune/database/database.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

namespace tilewright::autotune {

namespace {

namespace fs = std::filesystem;
constexpr uintmax_t kMostBytes = uintmax_t{1} << 30;

// A file that is closed with the object, which also gives up the lock on it.
struct OpenFile {
  const int fd;
  explicit OpenFile(const std::string& path)
      : fd(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
  bool is_at(const std::string& path) const {
    struct stat mine{}, there{};
    return ::fstat(fd, &mine) == 0 && ::stat(path.c_str(), &there) == 0 &&
           mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
  }
};

}  // namespace

Result<Database> Database::open(const std::string& path) {
  Database db(path);
  std::error_code error;
  if (!fs::exists(path, error)) return db;
  if (!fs::is_regular_file(path, error)) return io_error("not a file", path);
  if (fs::file_size(path, error) > kMostBytes) return limit_error("larger than 1 GiB", path);
  std::ifstream in(path, std::ios::binary);
  if (!in) return io_error("cannot be read", path);
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
  return OpenFile(path_).fd >= 0 ? Status{} : io_error("cannot be written", path_);
}

Status Database::append(const Record& record) {
  std::unique_ptr<const OpenFile> opened;
  do {  // again, where prune() put another file in its place in the meantime
    opened = std::make_unique<const OpenFile>(path_);
    if (opened->fd < 0 || ::flock(opened->fd, LOCK_EX) != 0)
      return io_error("cannot be written", path_);
  } while (!opened->is_at(path_));
  const OpenFile& file = *opened;
  std::string line = to_line(record);
  // What a process that was killed left unfinished keeps its line to itself.
  char last = '\n';
  const off_t size = ::lseek(file.fd, 0, SEEK_END);
  if (size > 0 && ::pread(file.fd, &last, 1, size - 1) == 1 && last != '\n') line.insert(0, "\n");
  if (::write(file.fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      ::fsync(file.fd) != 0) {
    const std::string why = std::strerror(errno);
    (void)!::ftruncate(file.fd, size);  // no part of a line, where the disk is full
    return io_error("cannot be written: " + why, path_);
  }
  records_.push_back(record);
  return {};
}

Result<size_t> Database::prune() {
  const OpenFile file(path_);  // whoever appends meanwhile waits, and opens the new file then
  if (file.fd < 0 || ::flock(file.fd, LOCK_EX) != 0) return io_error("cannot be written", path_);
  TW_ASSIGN(Database now, open(path_));
  std::vector<Record> kept;
  for (const Record& r : now.records_)
    if (now.is_current(r)) kept.push_back(r);
  const size_t before = now.records_.size() + now.damaged_.size();
  const std::string fresh = path_ + ".new";
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  for (const Record& r : kept) out << to_line(r);
  out.close();
  std::error_code error;
  if (out) fs::rename(fresh, path_, error);
  if (!out || error) return io_error("cannot be written", fresh);
  records_ = std::move(kept);
  damaged_.clear();
  return before - records_.size();
}

}  // namespace tilewright::autotune
