#include "codegen/link_output.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <future>

#include "runtime/core/temporary_folder.h"

namespace tilewright::codegen {

namespace {

// Until the last writer closes the pipe. What cannot be written is still read, as the linker waits for that.
Status drain(const Descriptor& pipe, FileWriter& file) {
  std::array<char, 1 << 16> piece;
  Status status;
  for (;;) {
    const ssize_t n = ::read(pipe.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(std::string("the linker's output: ") + std::strerror(errno));
    if (n == 0) return status;
    if (status.ok()) status = file.write({piece.data(), static_cast<size_t>(n)});
  }
}

}  // namespace

Status link_output(const Backend& backend, const std::vector<std::string>& objects,
                   FileWriter& file) {
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make());
  const std::string path = folder.file("output");
  TW_ASSIGN(NamedPipe pipe, make_pipe(path));
  auto written = std::async(std::launch::async, [&] { return drain(pipe.read, file); });
  const Status linked = backend.link(objects, path);
  pipe.write.reset();
  const Status drained = written.get();
  return drained.ok() ? linked : drained;
}

}  // namespace tilewright::codegen
