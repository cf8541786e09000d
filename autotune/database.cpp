#include "autotune/database.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/core/fnv.h"

namespace tilewright::autotune {

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kVersion = 2, kFirstVersion = 1;
constexpr uintmax_t kMostBytes = uintmax_t{1} << 30;

std::string checksum(const Json& fields) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(fnv1a(fields.dump())));
  return text;
}

Result<double> positive(const Json& value, const char* what) {
  const double n = value.is_number() ? value.get<double>() : 0;
  if (!(n > 0) || !std::isfinite(n)) return invalid(std::string("'") + what + "' is no time");
  return n;
}

Result<Record> parse_line(const std::string& line) {
  Json fields = Json::parse(line, nullptr, false);
  if (!fields.is_object()) return invalid("no JSON object");
  const auto sum = fields.find("checksum");
  if (sum == fields.end() || !sum->is_string()) return invalid("there is no checksum");
  const std::string given = sum->get<std::string>();
  fields.erase("checksum");
  if (given != checksum(fields)) return invalid("the checksum is wrong");
  const Json version = fields.value("version", Json());
  if (!version.is_number_integer() || version < kFirstVersion || version > kVersion)
    return invalid("of another version");
  const Json task = fields.value("task", Json()), device = fields.value("device", Json()),
             answers = fields.value("answers", Json()), steps = fields.value("schedule", Json()),
             ratio = fields.value("ratio", Json());
  if (!task.is_string() || !device.is_string() || !answers.is_object() || !steps.is_string() ||
      !ratio.is_array() || ratio.size() != 2)
    return invalid("a field is missing, or of another type");
  const Json family = fields.value("family", Json());
  if (!family.is_string() && version >= 2) return invalid("'family' is missing, or no text");
  Record r{.task = task.get<std::string>(),
           .device = device.get<std::string>(),
           .family = family.is_string() ? family.get<std::string>() : ""};
  for (const auto& [name, value] : answers.items()) {
    if (!value.is_number_integer()) return invalid("answer '" + name + "' is no integer");
    r.answers[name] = value.get<int64_t>();
  }
  TW_ASSIGN(r.schedule, passes::parse_trace(steps.get<std::string>()));
  TW_ASSIGN(r.usual_us, positive(fields.value("usual_us", Json()), "usual_us"));
  TW_ASSIGN(r.tuned_us, positive(fields.value("tuned_us", Json()), "tuned_us"));
  TW_ASSIGN(r.low, positive(ratio[0], "ratio"));
  TW_ASSIGN(r.high, positive(ratio[1], "ratio"));
  return r;
}

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

std::string to_line(const Record& r) {
  Json answers = Json::object();
  for (const auto& [name, value] : r.answers) answers[name] = value;
  Json fields{{"version", kVersion},
              {"task", r.task},
              {"device", r.device},
              {"family", r.family},
              {"answers", std::move(answers)},
              {"schedule", passes::to_string(r.schedule)},
              {"usual_us", r.usual_us},
              {"tuned_us", r.tuned_us},
              {"ratio", {r.low, r.high}}};
  fields["checksum"] = checksum(fields);
  return fields.dump() + "\n";
}

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

const Record* Database::find(const std::string& task, const std::string& device) const {
  const auto newest = std::find_if(records_.rbegin(), records_.rend(), [&](const Record& r) {
    return r.task == task && r.device == device;
  });
  return newest == records_.rend() ? nullptr : &*newest;
}

const Record* Database::find_like(const std::string& task, const std::string& family,
                                  const std::string& device) const {
  const Record* found = nullptr;
  int best = 0;
  for (const Record& r : records_) {
    const bool alike = !family.empty() && r.family == family;
    const int rank = r.task == task ? 3 : alike && r.device == device ? 2 : alike ? 1 : 0;
    if (rank > 0 && rank >= best) found = &r, best = rank;
  }
  return found;
}

Status Database::check_writable() const {
  return OpenFile(path_).fd >= 0 ? Status{} : io_error("cannot be written", path_);
}

Status Database::append(const Record& record) {
  std::optional<OpenFile> opened;
  do {  // again, where prune() put another file in its place in the meantime
    opened.emplace(path_);
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
      ::fsync(file.fd) != 0)
    return io_error("cannot be written", path_);
  records_.push_back(record);
  return {};
}

Result<size_t> Database::prune() {
  const OpenFile file(path_);  // whoever appends meanwhile waits, and opens the new file then
  if (file.fd < 0 || ::flock(file.fd, LOCK_EX) != 0) return io_error("cannot be written", path_);
  TW_ASSIGN(Database now, open(path_));
  std::vector<Record> kept;
  for (const Record& r : now.records_)
    if (now.find(r.task, r.device) == &r) kept.push_back(r);
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
