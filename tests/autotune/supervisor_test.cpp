// Whoever ends the process that checks candidates is told, and nobody else.
#include "autotune/check/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/autotune/ending_worker.h"

namespace tilewright::autotune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Supervised {
 public:
  explicit Supervised(const std::vector<Ending>& endings) {
    ir::Program part;
    part.blocks.emplace_back();
    const CapturedCall call;
    CapturedCalls captured;
    auto contents = SharedMemory::make(64);
    EXPECT_TRUE(contents.ok()) << contents.error().to_string();
    captured.contents = std::move(*contents);
    part.blocks[0].resize(endings.size(), ir::CallInstruction());
    const std::vector<const CapturedCall*> calls(endings.size(), &call);
    auto jobs = SharedJobs::make(part, calls, captured, 1, false, 0.2);
    EXPECT_TRUE(jobs.ok()) << jobs.error().to_string();
    for (size_t j = 0; j < endings.size(); ++j)
      jobs->jobs()[j].element = static_cast<int64_t>(endings[j]);
    ended_ = supervise(*jobs, {.worker = ENDING_WORKER, .model = "none"});
    for (const CheckJob& j : jobs->jobs()) states_.push_back(j.state);
  }
  const Result<std::vector<std::string>>& ended() const { return *ended_; }
  const std::vector<CheckState>& states() const { return states_; }

 private:
  std::optional<Result<std::vector<std::string>>> ended_;
  std::vector<CheckState> states_;
};

TEST(Supervisor, TellsWhoEndedAProcessAndGoesOn) {
  const Supervised s({Ending::kNone, Ending::kFault, Ending::kNone, Ending::kExit, Ending::kHang,
                      Ending::kFault, Ending::kNone});
  ASSERT_TRUE(s.ended().ok()) << s.ended().error().to_string();
  EXPECT_THAT(*s.ended(),
              ElementsAre("", HasSubstr("signal 9"), "", "ended its process",
                          HasSubstr("took longer than 0.2"), HasSubstr("signal 9"), ""));
  EXPECT_THAT(s.states(), ElementsAre(CheckState::kEqual, CheckState::kEnded, CheckState::kEqual,
                                      CheckState::kEnded, CheckState::kEnded, CheckState::kEnded,
                                      CheckState::kEqual));
}

TEST(Supervisor, BlamesNobodyForWhatOthersLeft) {
  const Supervised s({Ending::kNone, Ending::kFaultBehindAnother, Ending::kFaultBehindAnother});
  ASSERT_TRUE(s.ended().ok()) << s.ended().error().to_string();
  EXPECT_THAT(*s.ended(), ElementsAre("", "", ""));
  EXPECT_THAT(s.states(), ElementsAre(CheckState::kEqual, CheckState::kEqual, CheckState::kEqual));
}

TEST(Supervisor, AProcessThatFailsInNoJobIsAnError) {
  const Supervised s({Ending::kNone, Ending::kBetweenJobs});
  ASSERT_FALSE(s.ended().ok());
  EXPECT_EQ(s.ended().error().kind, ErrorKind::kIo);
}

}  // namespace
}  // namespace tilewright::autotune
