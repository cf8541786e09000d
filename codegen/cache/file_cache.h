// Files by the names of their contents, in one folder that several processes share: bounded in bytes,
// the longest unused go first. A file is written beside its place and renamed, so that none is ever
// seen in part, and ends with a seal (its size and a hash of it and its name): one that is damaged,
// cut off or put under another name is as good as none, and so is one that others could have written
// (open_trusted). Whatever fails costs time alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/open_file.h"
#include "runtime/core/write_file.h"

namespace tilewright::cache {

class FileCache {
 public:
  // The folder is made by the first write. `most_bytes`: of all files together.
  FileCache(std::string folder, int64_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // name: letters and digits, as ContentHash::hex gives them.
  std::optional<std::vector<uint8_t>> read(const std::string& name);
  bool write(const std::string& name, std::span<const uint8_t> contents);

  // The same for files that others write, read and check: they bear a seal of their own, with the
  // name in it. A path stays good while the file is used, as a file that goes is only unlinked.
  std::optional<std::string> find(const std::string& name);
  // `fill` writes contents into the file, or to its path; the path from where they can be read from then on.
  std::optional<std::string> keep(const std::string& name,
                                  const std::function<Status(FileWriter& file)>& fill);

  // Called with the first reason why files are not used, and with the first why none is written.
  void set_note(std::function<void(const std::string&)> note);

  const std::string& folder() const { return folder_; }
  int64_t most_bytes() const { return most_bytes_; }

 private:
  std::string path(const std::string& name) const;
  Result<InputFile> open_entry(const std::string& name);
  Result<std::shared_ptr<const TemporaryFolder>> begun();
  void say_once(bool& said, const std::string& text);
  void make_room(int64_t written);

  const std::string folder_;
  const int64_t most_bytes_;
  std::mutex lock_;
  std::function<void(const std::string&)> note_;
  std::shared_ptr<const TemporaryFolder> begun_;  // where files are written
  bool said_unread_ = false, said_unwritten_ = false;
  int64_t unchecked_ = -1;  // bytes written since the folder was last looked through; -1: never
};

// The folder of what Tilewright keeps for this user: $XDG_CACHE_HOME/tilewright or
// ~/.cache/tilewright; empty where the environment names neither.
std::string user_folder();

// The user's cache of kernels and compiled models, below user_folder(): 4 GiB, or as many bytes as
// TILEWRIGHT_CACHE_BYTES says; null for 0 bytes, or where there is no folder. Lives as long as the
// process.
FileCache* user_cache();

}  // namespace tilewright::cache
