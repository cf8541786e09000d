// Between fork and exec the child calls only what is safe there in a process with threads: all strings are made before.
#include "runtime/distributed/start_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/distributed/tcp_socket.h"

extern char** environ;

namespace tilewright::distributed {

namespace {

struct Pipe {
  Descriptor read, write;
};

// Never 0, 1 or 2, which the child replaces.
Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return io_error("no pipe: " + system_error_text(errno));
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  for (Descriptor* end : {&pipe.read, &pipe.write}) {
    if (end->get() > STDERR_FILENO) continue;
    Descriptor above(::fcntl(end->get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!above) return io_error("no pipe: " + system_error_text(errno));
    *end = std::move(above);
  }
  return pipe;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& more) {
  std::vector<std::string> all;
  for (char** e = environ; e && *e; ++e) {
    const std::string entry = *e;
    if (more.count(entry.substr(0, entry.find('='))) == 0) all.push_back(entry);
  }
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The files that execvp() would try.
std::vector<std::string> candidates_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  const char* path = ::getenv("PATH");
  std::string folders = path ? path : "/usr/local/bin:/usr/bin:/bin";
  std::vector<std::string> candidates;
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    candidates.push_back((folder.empty() ? "." : folder) + "/" + program);
    begin = end + 1;
  }
  return candidates;
}

struct Child {
  std::vector<char*> candidates, arguments, environment;
  int out, error, report;  // ends for writing
  pid_t parent;
  const sigset_t* mask;
};

void set_default_actions() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int s = 1; s < NSIG; ++s) ::sigaction(s, &action, nullptr);
}

// Tells the parent the error's number and ends.
[[noreturn]] void fail(const Child& child, int error) {
  [[maybe_unused]] const ssize_t n = ::write(child.report, &error, sizeof error);
  ::_exit(127);
}

[[noreturn]] void run_child(const Child& child) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != child.parent) ::_exit(127);  // it ended before
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0 || ::dup2(child.out, STDOUT_FILENO) < 0 ||
      ::dup2(child.error, STDERR_FILENO) < 0)
    fail(child, errno);
  if (null == STDIN_FILENO) ::fcntl(null, F_SETFD, 0);
  set_default_actions();
  ::sigprocmask(SIG_SETMASK, child.mask, nullptr);
  int error = ENOENT;
  for (char* const program : child.candidates) {
    if (!program) break;
    ::execve(program, child.arguments.data(), child.environment.data());
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
    if (error != ENOENT && error != EACCES) break;
  }
  fail(child, error);
}

// The error of a child that could not execute its program; 0: it does.
int reported_error(const Descriptor& report) {
  int error = 0;
  ssize_t n;
  do n = ::read(report.get(), &error, sizeof error);
  while (n < 0 && errno == EINTR);
  return n == sizeof error ? error : 0;
}

void reap(pid_t id) {
  while (::waitpid(id, nullptr, 0) < 0 && errno == EINTR) {}
}

}  // namespace

Result<StartedProcess> start_process(const ProcessSpec& spec, const sigset_t& mask) {
  TW_CHECK(!spec.command.empty());
  TW_ASSIGN(Pipe out, make_pipe());
  TW_ASSIGN(Pipe error, make_pipe());
  TW_ASSIGN(Pipe report, make_pipe());
  std::vector<std::string> candidates = candidates_of(spec.command[0]);
  std::vector<std::string> arguments = spec.command;
  if (!spec.name.empty()) arguments[0] = spec.name;
  std::vector<std::string> environment = environment_with(spec.environment);
  const Child child{pointers_to(candidates),
                    pointers_to(arguments),
                    pointers_to(environment),
                    out.write.get(),
                    error.write.get(),
                    report.write.get(),
                    ::getpid(),
                    &mask};
  const std::string name = "'" + spec.command[0] + "'";
  // Handlers of signals are this process's own: none may run in the child.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t id = ::fork();
  if (id == 0) run_child(child);
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (id < 0) return io_error("cannot start " + name + ": " + system_error_text(fork_error));
  ::setpgid(id, id);  // as the child does: whichever comes first
  report.write.reset();
  if (const int number = reported_error(report.read)) {
    reap(id);
    return io_error("cannot start " + name + ": " + system_error_text(number));
  }
  for (const Descriptor* end : {&out.read, &error.read})
    ::fcntl(end->get(), F_SETFL, ::fcntl(end->get(), F_GETFL) | O_NONBLOCK);
  return StartedProcess{id, std::move(out.read), std::move(error.read)};
}

}  // namespace tilewright::distributed
