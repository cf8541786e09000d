// Writes files. A file is made beside its target and renamed over it, so that readers see the old contents or the
// new ones and a full disk costs neither.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/descriptor.h"
#include "runtime/core/result.h"
#include "runtime/core/temporary_folder.h"

namespace tilewright {

// Who may use a file that did not exist before: whom the umask admits, or this user alone.
enum class FileAccess { kUsual, kPrivate };
// Whether commit() waits until the disk has the file and its name.
enum class Durability { kCached, kOnDisk };

// A file that replaces its target when all of it was written. Links are followed, and stay; the mode of a file that is
// replaced stays, too, and its owner where this user may set it. A device, a pipe and what standard output or standard
// error lead to are written into: they are never replaced. Folders, sockets, block devices and files that this
// user may not write are refused.
class FileWriter {
 public:
  // Changes nothing by the name of the target. Errors: kIo.
  static Result<FileWriter> create(const std::string& target,
                                   FileAccess access = FileAccess::kUsual);
  // The same with a temporary folder beside the target that several files are made in, one after the other or at
  // once: making one takes milliseconds. It outlives the writer.
  static Result<FileWriter> create_in(const TemporaryFolder& folder, const std::string& target,
                                      FileAccess access);
  FileWriter(FileWriter&& other) noexcept = default;
  ~FileWriter();

  // The path of the file that is being made, for libraries that write by a name before commit().
  const std::string& path() const { return path_; }
  // Errors: kIo, which name the target.
  Status write(std::string_view bytes);
  // Ends what write() began, so that the file can be written by its path.
  Status close();
  Status commit(Durability durability = Durability::kCached);

  // Where output goes that is not a file by itself: a path as the user gave it, what it leads to, and how that is.
  struct Target {
    std::string given, path;
    bool exists = false, direct = false;  // direct: written into
    int standard = -1;                    // the descriptor of standard output or error that it is
    struct stat about{};                  // where it exists
  };

 private:
  FileWriter(Target target, FileAccess access, std::string path)
      : target_(std::move(target)), access_(access), path_(std::move(path)) {}
  Status copy_to_target() const;
  Status set_access(int descriptor) const;

  Target target_;
  FileAccess access_;
  std::optional<TemporaryFolder> folder_;  // its own
  std::string path_;
  Descriptor file_;
};

// Errors of these: kIo.
Status write_file(const std::string& path, std::string_view bytes,
                  FileAccess access = FileAccess::kUsual);
// Whether a FileWriter for the target could be made; changes nothing.
Status check_writable(const std::string& path);

// A file by a new name in the folder, between `prefix` and `suffix`, for this user alone. Returns the path.
Result<std::string> write_new_file(const std::string& folder, const std::string& prefix,
                                   const std::string& suffix, std::string_view bytes);

// A file of a temporary folder that `fill` writes through a mapping, for which space on the disk is reserved before.
Status write_mapped(const std::string& path, uint64_t bytes,
                    const std::function<void(uint8_t*)>& fill);

// A pipe by a name in a temporary folder, for a library that writes by a name: it ends when `write` and what others
// opened for writing are closed.
struct NamedPipe {
  Descriptor read, write;
};
Result<NamedPipe> make_pipe(const std::string& path);

// Opens a file to read it and write behind its end, and makes it where there is none. `only_regular`: else also pipes
// that are read and devices, which are only written.
Result<Descriptor> open_to_append(const std::string& path, bool only_regular);
// Writes all, or leaves a regular file as long as it was. `path`: for the error.
Status append(int descriptor, std::string_view bytes, const std::string& path);

}  // namespace tilewright
