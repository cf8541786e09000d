// Ranges of results leave behind their last use, and nothing uses them afterwards: over random programs.
#include <gtest/gtest.h>

#include <random>

#include "ir/module_text/parser_program.h"
#include "ir/module_text/printer_program.h"
#include "ir/verify_program.h"
#include "passes/plan_program.h"

namespace tilewright::passes {
namespace {

using namespace ir;

constexpr int kMembers = 6, kMemberBytes = 64;

// Calls that copy 16 elements: from the input, a member of the result or a temporary, to a member or the temporary.
// Every member is written before it is read.
struct Drawn {
  std::string text;
  std::vector<std::pair<int, int>> calls;  // (from, to): members; -1: neither
};
Drawn draw(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Drawn d;
  d.text =
      "program drawn standard {\n  input b0 \"x\": f32[16] elements 16 live 0..0\n  output b1 "
      "\"y\": f32[" +
      std::to_string(kMembers * 16) + "] elements " + std::to_string(kMembers * 16) +
      " live 0..0\n";
  for (int m = 0; m < kMembers; ++m)
    d.text += "  temporary b" + std::to_string(m + 2) + " \"m\": f32[16] elements 16 of b1" +
              (m ? " at " + std::to_string(m * kMemberBytes) : "") + " by (1 of 0) live 0..0\n";
  d.text +=
      "  inputs(b0)\n  outputs(b1)\nkernel k0(A: f32[16], B: f32[16]) {\n"
      "  B[ramp(0, 1, 16)] = A[ramp(0, 1, 16)]\n}\n  block {\n";
  std::vector<int> written;
  std::vector<int> left(kMembers);
  for (int m = 0; m < kMembers; ++m) left[static_cast<size_t>(m)] = m;
  while (!left.empty() || below(4) > 0) {
    const bool fresh = !left.empty() && (written.empty() || below(2) == 0);
    int to = 0, from = -1;
    if (fresh) {
      const size_t k = static_cast<size_t>(below(static_cast<int>(left.size())));
      to = left[k];
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(k));
    } else {
      to = written[static_cast<size_t>(below(static_cast<int>(written.size())))];
    }
    if (!written.empty() && below(2) == 0)
      from = written[static_cast<size_t>(below(static_cast<int>(written.size())))];
    if (from == to) from = -1;
    if (fresh) written.push_back(to);
    d.calls.emplace_back(from, to);
    d.text += "    call 0(b" + std::to_string(from < 0 ? 0 : from + 2) + ", b" +
              std::to_string(to + 2) + ")\n";
  }
  d.text += "  }\n}\n";
  return d;
}

Program parsed(const std::string& text) {
  auto program = parse_program(text, {});
  EXPECT_TRUE(program.ok()) << program.error().to_string() << text;
  return set_lifetimes(std::move(*program));
}

TEST(StartRanges, AreBehindTheLastUseAndNothingFollows) {
  std::mt19937 random(5);
  for (int n = 0; n < 300; ++n) {
    const Drawn d = draw(random);
    SCOPED_TRACE(d.text);
    std::vector<ResultRange> ranges;
    for (int begin = 0; begin < kMembers;) {
      const int end = begin + 1 + static_cast<int>(random() % 3u);
      ranges.push_back({"y", begin * kMemberBytes, std::min(end, kMembers) * kMemberBytes});
      begin = end;
    }
    auto started = start_ranges(parsed(d.text), ranges);
    ASSERT_TRUE(started.ok()) << started.error().to_string();
    const Status valid = verify(*started);
    ASSERT_TRUE(valid.ok()) << valid.error().to_string();
    // The text says all of it.
    const std::string text = to_text(*started);
    EXPECT_EQ(to_text(parsed(text)), text);
    // By brute force: how many calls come before each start.
    size_t calls = 0, starts = 0;
    for (size_t i = 0; i < started->blocks[0].size(); ++i) {
      const auto* s = std::get_if<StartInstruction>(&started->blocks[0][i]);
      calls += !s;
      if (!s) continue;
      ++starts;
      size_t last = 0;
      for (size_t c = 0; c < d.calls.size(); ++c)
        for (const int m : {d.calls[c].first, d.calls[c].second})
          if (m >= 0 && m * kMemberBytes < s->end && s->begin < (m + 1) * kMemberBytes)
            last = c + 1;
      EXPECT_EQ(calls, last);
      // One call earlier is too early.
      Program early = *started;
      std::swap(early.blocks[0][i], early.blocks[0][i - 1]);
      if (!std::holds_alternative<StartInstruction>(early.blocks[0][i])) {
        const Status refused = verify(set_lifetimes(std::move(early)));
        ASSERT_FALSE(refused.ok());
        EXPECT_NE(refused.error().to_string().find("after their start"), std::string::npos)
            << refused.error().to_string();
      }
    }
    EXPECT_EQ(starts, ranges.size());
  }
}

TEST(StartRanges, RulesOfWhatMayBeStarted) {
  std::mt19937 random(6);
  const Program good = *start_ranges(parsed(draw(random).text), {{"y", 0, 128}});
  const auto refuses = [&](const char* why, auto&& change) {
    Program p = good;
    for (ProgramInstruction& i : p.blocks[0])
      if (auto* s = std::get_if<StartInstruction>(&i)) change(*s);
    const Status status = verify(set_lifetimes(std::move(p)));
    ASSERT_FALSE(status.ok()) << why;
    EXPECT_NE(status.error().to_string().find(why), std::string::npos)
        << status.error().to_string();
  };
  refuses("which it does not have",
          [](StartInstruction& s) { s.end = kMembers * kMemberBytes + 1; });
  refuses("which it does not have", [](StartInstruction& s) { s.begin = -4; });
  refuses("is no result of its own", [](StartInstruction& s) { s.buffer = 0; });
  refuses("is no result of its own", [](StartInstruction& s) { s.buffer = 2; });
  refuses("is number 0", [](StartInstruction& s) { s.number = 3; });
  EXPECT_FALSE(start_ranges(parsed(draw(random).text), {{"z", 0, 4}}).ok());
}

}  // namespace
}  // namespace tilewright::passes
