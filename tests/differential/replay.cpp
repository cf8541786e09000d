#include "tests/differential/replay.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "ir/text/parser_loops.h"
#include "ir/text/printer_loops.h"
#include "passes/lower.h"

namespace tilewright {

namespace {

// Texts with their lengths before them, one after the other.
void put(std::ostream& out, const std::string& text) { out << text.size() << '\n' << text; }
bool get(std::istream& in, std::string& text) {
  size_t n = 0;
  if (!(in >> n) || in.get() != '\n') return false;
  text.resize(n);
  return static_cast<bool>(in.read(text.data(), static_cast<std::streamsize>(n)));
}

// Flat loops, which name no axes: these texts number by where they stand, where several are called
// alike.
Result<std::string> lowered(const ir::Kernel& kernel, const passes::Trace& trace) {
  passes::LowerOptions options;
  options.find_schedule = [&](const ir::Kernel&, const std::set<std::string>&) { return trace; };
  TW_ASSIGN(const ir::Kernel flat, passes::lower_to_flat(kernel, options));
  return ir::to_text(flat);
}
Result<std::string> replayed(const std::string& kernel, const std::string& trace) {
  TW_ASSIGN(const ir::Kernel k, ir::parse_kernel(kernel));
  TW_ASSIGN(const passes::Trace t, passes::parse_trace(trace));
  return lowered(k, t);
}
// What the other process does: its exit status is 0 when all texts are the same.
int replay(const char* path) {
  std::ifstream in(path, std::ios::binary);
  size_t count = 0;
  for (ReplayCase c; get(in, c.kernel); ++count) {
    if (!get(in, c.trace) || !get(in, c.flat)) return 2;
    const auto found = replayed(c.kernel, c.trace);
    if (found.ok() && *found == c.flat) continue;
    std::cerr << (found.ok() ? "another kernel" : found.error().to_string()) << " from\n"
              << c.kernel << "by\n"
              << c.trace;
    return 1;
  }
  return count > 0 ? 0 : 2;
}

}  // namespace

ReplayCase replay_case(const ir::Kernel& kernel, const passes::Trace& trace) {
  auto flat = lowered(kernel, trace);
  TW_CHECK(flat.ok());
  return {ir::to_text(kernel), passes::to_string(trace), std::move(*flat)};
}

void expect_replayed(const std::vector<ReplayCase>& cases) {
  if (cases.empty()) return;  // one seed alone was wanted, of another part
  const std::string path =
      std::filesystem::temp_directory_path() / ("tilewright_replay_" + std::to_string(getpid()));
  std::ofstream out(path, std::ios::binary);
  for (const ReplayCase& c : cases)
    for (const std::string* text : {&c.kernel, &c.trace, &c.flat}) put(out, *text);
  out.close();
  ASSERT_TRUE(out) << path;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    execl("/proc/self/exe", "test", "--replay", path.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "of " << cases.size() << " schedules; status " << status;
  std::filesystem::remove(path);
}

}  // namespace tilewright

int main(int argc, char** argv) {
  if (argc == 3 && argv[1] == std::string_view("--replay")) return tilewright::replay(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
