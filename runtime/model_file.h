// An open regular file, mapped to be read, and known by what it is and not by what it is called.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/core/result.h"

namespace tilewright {

class ModelFile {
 public:
  // Errors: those of open_to_read; kLimit where its pages find no room.
  static Result<ModelFile> open(const std::string& path);
  ModelFile(ModelFile&& other) noexcept;
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  // Closes the descriptor, unless the program has closed it and uses the number for something else.
  ~ModelFile();

  int descriptor() const { return descriptor_; }
  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  bool is_same(const ModelFile& other) const {
    return device_ == other.device_ && inode_ == other.inode_;
  }
  // A path that leads to this file and to no other: that of the descriptor where /proc is mounted,
  // else the one that it was opened by, if that still leads here; empty: there is none.
  std::string path() const;
  bool leads_here(const std::string& path) const;
  // Moves the descriptor to a higher number, and with it path(). False: the process may open no
  // more.
  bool renumber();

 private:
  ModelFile() = default;
  std::string given_path_;
  int descriptor_ = -1;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace tilewright
