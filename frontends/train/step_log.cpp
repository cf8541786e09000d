#include "frontends/train/step_log.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontends/train/partial_file.h"

namespace tilewright::train {

namespace {

using Json = nlohmann::ordered_json;

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
  const Json j = Json::parse(text, nullptr, false);
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
  log->file_.reset(std::fopen(log->path_.c_str(), "ab"));
  if (!log->file_)
    return io_error(std::string("cannot be written: ") + std::strerror(errno), path.string());
  return log;
}

// Lines count as far as they are those of steps one after the other: a run that was ended may have left
// half a line.
Status StepLog::keep_before(int64_t step, bool take_over) {
  uintmax_t bytes = 0;
  std::ifstream in(path_, std::ios::binary);
  for (std::string text; steps_kept_ < step && std::getline(in, text);) {
    const auto line = from_json(text);
    if (in.eof() || !line || line->step != steps_kept_) break;
    if (remember_) lines_.push_back(*line);
    ++steps_kept_;
    bytes += text.size() + 1;
  }
  in.close();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path_, error)) return {};
  std::filesystem::path file = path_;
  if (take_over) {
    path_ = std::filesystem::canonical(path_, error);
    if (!error) file = partial_beside(path_);
    if (!error) std::filesystem::copy_file(path_, file, error);
  }
  if (!error) std::filesystem::resize_file(file, bytes, error);
  if (!error && take_over) std::filesystem::rename(file, path_, error);
  return error ? io_error("cannot be written: " + error.message(), path_.string()) : Status();
}

Status StepLog::write(const LogLine& line) {
  if (remember_) lines_.push_back(line);
  if (!file_) return {};
  const std::string text = to_json(line).dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() ||
      std::fflush(file_.get()) != 0)
    return io_error(std::string("cannot be written: ") + std::strerror(errno), path_.string());
  return {};
}

Status StepLog::flush_to_disk() {
  // Pipes and devices have no disk.
  if (!file_ || ::fsync(::fileno(file_.get())) == 0 || errno == EINVAL || errno == ENOTSUP)
    return {};
  return io_error(std::string("cannot be written: ") + std::strerror(errno), path_.string());
}

}  // namespace tilewright::train
