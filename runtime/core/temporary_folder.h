// A folder for files that are being made, which no process leaves behind for long.
#pragma once

#include <string>

#include "runtime/core/descriptor.h"
#include "runtime/core/result.h"

namespace tilewright {

// The folder and the files in it go with the object. Its maker holds a lock on it: the first folder that a process
// makes in a parent also removes those there whose makers were killed.
class TemporaryFolder {
 public:
  // Errors: kIo, which says why and has no location.
  static Result<TemporaryFolder> make(const std::string& parent);
  // In the folder of temporary files that the environment names.
  static Result<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  // Whether it is still there by its name.
  bool exists() const;
  ~TemporaryFolder();

  // The path of a file in it.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  TemporaryFolder(std::string path, Descriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;  // empty: moved away
  Descriptor lock_;   // of the folder
};

}  // namespace tilewright
