#include "frontends/cli/standard_streams.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <streambuf>

#include "frontends/cli/cli.h"
#include "runtime/core/printable.h"

namespace tilewright::cli {

namespace {

// Stands behind a stream of C, which C++ streams write to, as long as the process lives.
struct StandardStream {
  int descriptor;
  PrintableText filter;
  int error = 0;  // the first

  bool write_all(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::write(descriptor, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        if (error == 0) error = n < 0 ? errno : ENOSPC;
        return false;
      }
      text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  static ssize_t write(void* self, const char* text, size_t bytes) {
    auto& stream = *static_cast<StandardStream*>(self);
    return stream.write_all(stream.filter.add({text, bytes})) ? static_cast<ssize_t>(bytes) : 0;
  }
};

class ToFile : public std::streambuf {
 public:
  explicit ToFile(std::FILE* file) : file_(file) {}

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    return std::fputc(c, file_) == EOF ? traits_type::eof() : c;
  }
  std::streamsize xsputn(const char* text, std::streamsize bytes) override {
    return static_cast<std::streamsize>(std::fwrite(text, 1, static_cast<size_t>(bytes), file_));
  }
  int sync() override { return std::fflush(file_); }

 private:
  std::FILE* file_;
};

StandardStream& output() {
  static auto* stream = new StandardStream{STDOUT_FILENO, {}};
  return *stream;
}
StandardStream& errors() {
  static auto* stream = new StandardStream{STDERR_FILENO, {}};
  return *stream;
}

void redirect(std::FILE*& file, std::ostream& stream, StandardStream& to, int buffering) {
  std::FILE* filtered = ::fopencookie(&to, "w", {.read = nullptr, .write = StandardStream::write});
  if (!filtered) return;
  std::setvbuf(filtered, nullptr, buffering, BUFSIZ);
  file = filtered;
  stream.rdbuf(new ToFile(filtered));
}

}  // namespace

void set_up_standard_streams() {
  // A file that a command opens must not take the place of a standard stream that is closed.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      (void)!::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  // A limit on the size of files is an error of the write.
  ::signal(SIGXFSZ, SIG_IGN);
  redirect(stdout, std::cout, output(), ::isatty(STDOUT_FILENO) == 1 ? _IOLBF : _IOFBF);
  redirect(stderr, std::cerr, errors(), _IONBF);
}

void control_terminal(const std::string& sequence) {
  std::fflush(stderr);
  errors().write_all(sequence);
}

int finish_standard_output(int status) {
  std::cout.flush();
  std::fflush(stdout);
  StandardStream& out = output();
  out.write_all(out.filter.end());
  // Some file systems say only when a file is closed that it could not be written.
  const int copy = ::dup(STDOUT_FILENO);
  if (copy >= 0 && ::close(copy) != 0 && out.error == 0) out.error = errno;
  if (out.error == 0) return status;
  const int failed = report(
      io_error(std::string("cannot be written: ") + std::strerror(out.error), "standard output"));
  return status == kOk ? failed : status;
}

}  // namespace tilewright::cli
