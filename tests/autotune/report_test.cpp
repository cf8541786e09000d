// The page on what tuning found: whole and safe whatever the names, and with all that was found.
#include "autotune/report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "autotune/report/html.h"
#include "autotune/report/page.h"
#include "autotune/report/plot.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright::autotune::report {
namespace {

constexpr const char* kEvil = "<script src='http://x'>\"&\x01\xff";

Comparison faster(double usual_us, double ratio) {
  return {.ratio = ratio,
          .low = ratio - 0.02,
          .high = ratio + 0.02,
          .pairs = 20,
          .a = usual_us,
          .b = usual_us * ratio};
}
TunedKernel kernel(const std::string& name, double us, bool improved) {
  TunedKernel k{.name = name, .task = name, .us = us, .calls = 2};
  k.flops = 2'000'000, k.bytes = 100'000;
  k.expected_us = us / 2;
  k.trials.push_back({.answers = {{"conv.rows", 4}},
                      .expected_us = us / 3,
                      .measured = faster(us, 0.8),
                      .seconds = 1,
                      .confirmed = improved});
  if (!improved) return k;
  k.improved = true;
  k.gain = faster(us, 0.8);
  k.best.expected_us = us / 3;
  k.changes.push_back({.name = "conv.rows",
                       .values = {8, 4},
                       .answer = 4,
                       .usual = 8,
                       .microseconds = {us / 2, std::nan("")}});
  return k;
}
TuneResult some_result(size_t kernels) {
  TuneResult r;
  for (size_t i = 0; i < kernels; ++i)
    r.kernels.push_back(
        kernel("k" + std::to_string(i) + "_conv", 1000.0 - static_cast<double>(i), i % 10 != 9));
  r.runs = faster(50000, 0.9);
  r.progress = {.rounds = 2, .trials = kernels, .seconds = 12};
  r.rounds = {{.rounds = 1, .saved = 0.02, .seconds = 4},
              {.rounds = 2, .saved = 0.1, .seconds = 9}};
  return r;
}
Facts some_facts() {
  return {.model = "net.onnx",
          .inputs = "x: f32[1, 3]",
          .device = "Some CPU",
          .numerics = "standard",
          .threads = 2,
          .arithmetic = {{"f32 multiply-adds", 400}},
          .memory = {{"L2", 300}, {"memory", 40}}};
}

// Elements are closed in their order, and every & begins an entity.
void expect_well_formed(const std::string& page) {
  std::vector<std::string> open;
  for (size_t at = page.find('\n'); (at = page.find_first_of("<&>", at)) != std::string::npos;) {
    ASSERT_NE(page[at], '>') << page.substr(at, 60);
    if (page[at] == '&') {
      const std::string entity = page.substr(at, page.find(';', at) + 1 - at);
      ASSERT_TRUE(entity == "&amp;" || entity == "&lt;" || entity == "&gt;" || entity == "&quot;" ||
                  entity == "&#39;")
          << entity;
      at += entity.size();
      continue;
    }
    const size_t end = page.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = page.substr(at + 1, end - at - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty()) << tag;
      ASSERT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end + 1;
  }
  EXPECT_TRUE(open.empty()) << open.back();
}
size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

TEST(Report, HasWhatWasFound) {
  const std::string text = page(some_result(20), some_facts());
  expect_well_formed(text);
  EXPECT_EQ(text.find("http"), std::string::npos);  // nothing is fetched
  for (const char* part :
       {"net.onnx", "Some CPU", "standard", "x: f32[1, 3]", "10.00 %", "8.00 %", "12.00 %",
        "18 of 20", "12 s, 2 rounds, 20 trials", "conv.rows", "8 \u2192 <strong>4</strong>",
        "500 \u2192 \u2013", "0.800 (0.780 to 0.820)", "saved, us a run", "time of tuning, s",
        "measured in the model, us a call", "operations a byte", "L2, 300 GB/s",
        "f32 multiply-adds, 400"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  for (int i = 0; i < 20; ++i)
    EXPECT_NE(text.find("k" + std::to_string(i) + "_conv<"), std::string::npos) << i;
  EXPECT_EQ(text.find("Refused"), std::string::npos);
  EXPECT_EQ(text.find("others ("), std::string::npos);
}

TEST(Report, TellsWhatBecameOfTheGraph) {
  TuneResult r = some_result(3);
  EXPECT_EQ(page(r, some_facts()).find("Decisions on the graph"), std::string::npos);
  r.graph.trials = {
      {.alike = "conv <3x3>", .answer = "F4", .answers = {}, .measured = faster(90, 0.7)},
      {.alike = "layout", .answer = "rows", .answers = {}, .refused = "it crashed"}};
  r.graph.trials[0].confirmed = true;
  for (const bool kept : {true, false}) {
    if (kept) r.graph.form.answers = {{"a.winograd", 4}};
    r.graph.gain = faster(90, 0.71);
    const std::string text = page(r, some_facts());
    EXPECT_NE(text.find("Decisions on the graph"), std::string::npos);
    EXPECT_NE(text.find("conv &lt;3x3&gt;"), std::string::npos);
    EXPECT_NE(text.find(ratio(0.7, 0.68, 0.72)), std::string::npos);
    EXPECT_NE(text.find("refused: it crashed"), std::string::npos);
    EXPECT_EQ(text.find("<strong>kept</strong>") != std::string::npos, kept);
    EXPECT_EQ(text.find("given up in the last runs") != std::string::npos, !kept);
    r.graph.form.answers.clear();
  }
}
TEST(Report, SumsUpWhatIsTooMuch) {
  TuneResult r = some_result(130);
  for (TunedKernel& k : r.kernels) k.trials[0].refused = "other results";
  const std::string text = page(r, some_facts());
  expect_well_formed(text);
  EXPECT_EQ(count(text, "others (90)"),
            4u);  // kernels of the roofline: point, tips; table; refused
  EXPECT_EQ(count(text, "others (77)"), 2u);  // improved ones: bars and decisions
  EXPECT_EQ(text.find("k100_conv<"), std::string::npos);
  EXPECT_EQ(count(text, ">other results<"), 40u);
}

TEST(Report, NamesDoNoHarm) {
  TuneResult r = some_result(0);
  r.kernels.push_back(kernel(kEvil, 100, true));
  r.kernels.back().changes[0].name = kEvil;
  r.kernels.back().changes[0].labels = {kEvil, kEvil};
  r.kernels.back().trials.push_back({.answers = {{kEvil, 1}}, .refused = kEvil});
  Facts f = some_facts();
  f.model = f.inputs = f.device = f.numerics = kEvil;
  f.memory[0].name = kEvil;
  const std::string text = page(r, f);
  expect_well_formed(text);
  EXPECT_EQ(text.find("<script"), std::string::npos);
  EXPECT_NE(text.find("&lt;script src=&#39;"), std::string::npos);
  EXPECT_EQ(escape(kEvil), "&lt;script src=&#39;http://x&#39;&gt;&quot;&amp;\ufffd\ufffd");
}

TEST(Report, LittleIsEnough) {
  expect_well_formed(page({}, {}));
  TuneResult few = some_result(1);
  few.runs.low = 0, few.runs.high = std::numeric_limits<double>::infinity();
  few.kernels[0].gain = {.ratio = 0.9, .low = 0, .high = INFINITY, .pairs = 3, .a = 10, .b = 9};
  few.kernels[0].flops = 0;
  few.kernels[0].trials.clear();
  few.rounds.clear();
  const std::string text = page(few, some_facts());
  expect_well_formed(text);
  for (const char* no : {"nan", "inf\"", "inf "}) EXPECT_EQ(text.find(no), std::string::npos) << no;
}

TEST(Report, IsWrittenWholeOrNotAtAll) {
  const ScratchFolder folder;
  const std::string path = folder / "report.html";
  ASSERT_TRUE(check_writable(path).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  ASSERT_TRUE(write_page(path, some_result(3), some_facts()).ok());
  EXPECT_EQ(read_file(path), page(some_result(3), some_facts()));
  const std::string nowhere = folder / "none/report.html", taken = folder / "taken";
  std::filesystem::create_directories(taken + "/folder");
  for (const std::string& wrong : {nowhere, taken}) {
    const Status checked = check_writable(wrong), written = write_page(wrong, {}, {});
    ASSERT_FALSE(checked.ok());
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(checked.error().kind, ErrorKind::kIo);
    EXPECT_EQ(written.error().to_string(), checked.error().to_string());
    EXPECT_EQ(written.error().location, wrong);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

TEST(Numbers, AreShort) {
  for (const auto& [n, text] : std::vector<std::pair<double, std::string>>{{0, "0"},
                                                                           {0.01234, "0.0123"},
                                                                           {0.1, "0.1"},
                                                                           {1.5, "1.5"},
                                                                           {12.345, "12.3"},
                                                                           {200, "200"},
                                                                           {123456, "123456"},
                                                                           {-2.5, "-2.5"},
                                                                           {INFINITY, "\u221e"}})
    EXPECT_EQ(number(n), text);
  EXPECT_EQ(shorten("abc", 3), "abc");
  EXPECT_EQ(shorten("ab\u2026", 3), "ab\u2026");
}

TEST(Axis, HoldsAllValues) {
  const Axis log = axis_over("", {3, 700, 0, NAN, INFINITY}, true);
  EXPECT_EQ(log.low, 2);
  EXPECT_EQ(log.high, 1000);
  const Axis linear = axis_over("", {-1, 24}, false);
  EXPECT_LT(linear.low, -1);
  EXPECT_GT(linear.high, 24);
  for (const bool l : {false, true}) {
    const Axis none = axis_over("", {}, l), one = axis_over("", {5}, l);
    EXPECT_LT(none.low, none.high);
    EXPECT_LT(one.low, one.high);
  }
}

}  // namespace
}  // namespace tilewright::autotune::report
