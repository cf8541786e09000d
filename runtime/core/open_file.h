// Opens files for reading. A name may stand for anything, so that what is opened is looked at before it is read.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/descriptor.h"
#include "runtime/core/result.h"

namespace tilewright {

// A regular file that is open for reading.
struct InputFile {
  Descriptor descriptor;
  uint64_t bytes = 0;  // its size when it was opened
};

// Never waits. Errors: kIo for a name that cannot be opened, or of a folder, a named pipe, a socket or a device.
Result<InputFile> open_to_read(const std::string& path);

// The same of a file that decides what this process does, such as compiled code that was kept for later. Errors: also
// kInvalid for a file that another user than this one and root owns, or that its group or others may write.
Result<InputFile> open_trusted(const std::string& path);

// All bytes of a file. Errors: those of opening, kLimit for a file of more than `most_bytes`, kIo.
Result<std::string> read_whole(const std::string& path, uint64_t most_bytes);
Result<std::string> read_whole(const InputFile& file, const std::string& path, uint64_t most_bytes);

// A folder itself, e.g. for a lock on it. Errors: kIo.
Result<Descriptor> open_folder(const std::string& path);

// Whether there is anything by this name, even a link that leads nowhere.
bool is_taken(const std::string& path);

// What stat() says of a file that is not regular: "a folder", "a named pipe".
const char* kind_of_file(uint32_t mode);

}  // namespace tilewright
