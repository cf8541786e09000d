#include "frontends/train/step_log.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/core/open_file.h"
#include "runtime/core/parse_json.h"
#include "runtime/core/write_file.h"

namespace tilewright::train {

namespace {

using Json = nlohmann::ordered_json;
constexpr uint64_t kMostBytes = uint64_t{1} << 30;  // of a log

Json to_json(const LogLine& l) {
  Json j{{"step", l.step}, {"loss", l.loss}, {"lr", l.lr}};
  if (l.held_back_loss) j["held_back_loss"] = *l.held_back_loss;
  if (l.held_back_accuracy) j["held_back_accuracy"] = *l.held_back_accuracy;
  j["samples_per_second"] = l.samples_per_second;
  if (l.communicating) j["communicating"] = *l.communicating;
  if (l.waiting) j["waiting"] = *l.waiting;
  return j;
}

// Nothing where the text is no line of a log.
std::optional<LogLine> from_json(const std::string& text) {
  const Json j = parse_json<Json>(text);
  const auto number = [&](const char* key) -> std::optional<double> {
    if (!j.contains(key) || !j[key].is_number()) return std::nullopt;
    return j[key].get<double>();
  };
  if (!j.is_object() || !number("step") || !j["step"].is_number_integer()) return std::nullopt;
  const auto loss = number("loss"), lr = number("lr"), speed = number("samples_per_second");
  if (!loss || !lr || !speed) return std::nullopt;
  return LogLine{j["step"].get<int64_t>(),
                 *loss,
                 *lr,
                 number("held_back_loss"),
                 number("held_back_accuracy"),
                 *speed,
                 number("communicating"),
                 number("waiting")};
}

}  // namespace

Result<std::unique_ptr<StepLog>> StepLog::open(const std::filesystem::path& path, int64_t step,
                                               bool remember, bool take_over) {
  auto log = std::make_unique<StepLog>();
  log->remember_ = remember;
  if (path.empty()) return log;
  log->path_ = path;
  TW_RETURN_IF_ERROR(log->keep_before(step, take_over));
  TW_ASSIGN(log->file_, open_to_append(log->path_.string(), false));
  return log;
}

// Lines count as far as they are those of steps one after the other: a run that was ended may have left
// half a line.
Status StepLog::keep_before(int64_t step, bool take_over) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path_, error)) return {};
  size_t bytes = 0;
  TW_ASSIGN(const std::string all, read_whole(path_.string(), kMostBytes));
  std::istringstream in(all);
  for (std::string text; steps_kept_ < step && std::getline(in, text);) {
    const auto line = from_json(text);
    if (in.eof() || !line || line->step != steps_kept_) break;
    if (remember_) lines_.push_back(*line);
    ++steps_kept_;
    bytes += text.size() + 1;
  }
  if (take_over) return write_file(path_.string(), std::string_view(all).substr(0, bytes));
  std::filesystem::resize_file(path_, bytes, error);
  return error ? io_error("cannot be written: " + error.message(), path_.string()) : Status();
}

Status StepLog::write(const LogLine& line) {
  if (remember_) lines_.push_back(line);
  if (!file_) return {};
  const std::string text = to_json(line).dump() + "\n";
  return append(file_.get(), text, path_.string());
}

Status StepLog::flush_to_disk() {
  // Pipes and devices have no disk.
  if (!file_ || ::fsync(file_.get()) == 0 || errno == EINVAL || errno == ENOTSUP) return {};
  return io_error(std::string("cannot be written: ") + std::strerror(errno), path_.string());
}

}  // namespace tilewright::train
