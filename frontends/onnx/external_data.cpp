#include "frontends/onnx/external_data.h"

#include <algorithm>

#include "frontends/onnx/model.h"

namespace tilewright {

namespace fs = std::filesystem;

Result<fs::path> ExternalData::resolve(const std::string& location) const {
  std::string what = "external data " + quote(location);
  fs::path relative(location);
  if (folder_.empty()) return invalid(what + ": this model may have none");
  if (location.empty() || location.find('\0') != std::string::npos)
    return invalid(what + ": not a file name");
  if (relative.is_absolute()) return invalid(what + ": the location must be relative to the model");
  if (std::find(relative.begin(), relative.end(), "..") != relative.end())
    return invalid(what + ": '..' is not allowed");
  std::error_code code;
  fs::path folder = fs::canonical(folder_, code);
  if (code) return io_error("cannot find the model's folder: " + code.message(), folder_.string());
  fs::path file = fs::canonical(folder / relative, code);
  if (code) return io_error(what + ": " + code.message());
  auto [end, rest] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  if (end != folder.end()) return invalid(what + ": the link leads outside the model's folder");
  return file;
}

Result<MappedRange> ExternalData::map(const ExternalRange& range) {
  TW_ASSIGN(fs::path path, resolve(range.location));
  auto& file = files_[path];
  if (!file) { TW_ASSIGN(file, MappedFile::open(path)); }
  auto bytes = file->bytes();
  uint64_t available = range.offset <= bytes.size() ? bytes.size() - range.offset : 0;
  uint64_t length = range.length.value_or(available);
  if (range.offset > bytes.size() || length > available)
    return invalid("external data " + quote(range.location) + ": offset " +
                   std::to_string(range.offset) + " and length " + std::to_string(length) +
                   " reach beyond its " + std::to_string(bytes.size()) + " bytes");
  return MappedRange{bytes.subspan(range.offset, length), file};
}

}  // namespace tilewright
