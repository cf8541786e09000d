// Checkpoints as files: which of those in a folder a run goes on from.
#include <gtest/gtest.h>

#include <limits>

#include "frontends/train/checkpoint_folder.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright::train {
namespace {

HostTensor numbers(std::vector<float> values) {
  HostTensor t(DType::kFloat32, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}

// Older versions wrote states that were not finite: whole files, but none to go on from.
TEST(Checkpoints, WhatIsNotFiniteIsPassedOver) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                  kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {kInfinity, -kInfinity, kNan, -kNan})
    for (const size_t at : {0u, 1u, 5000u}) {
      const ScratchFolder scratch;
      auto folder = CheckpointFolder::open(scratch.path());
      ASSERT_TRUE(folder.ok()) << folder.error().to_string();
      const auto save = [&](int64_t step, float value) {
        std::vector<float> values(5001, 0.5f);
        values[at] = value;
        Checkpoint c{step, "{}", {}};
        c.arrays.emplace_back("parameters/w", numbers({1, 2, 3}));
        c.arrays.emplace_back("mean/w", numbers(values));
        return write_checkpoint((*folder)->file(step), std::move(c));
      };
      ASSERT_TRUE(save(5, 2).ok());
      ASSERT_TRUE(save(10, bad).ok());
      std::vector<std::string> notes;
      const auto note = [&](const std::string& text) { notes.push_back(text); };
      const auto found = (*folder)->newest(note);
      ASSERT_TRUE(found.ok() && *found);
      EXPECT_EQ((*found)->step, 5);
      ASSERT_EQ(notes.size(), 1u);
      EXPECT_NE(notes[0].find("step-000000010.npz"), std::string::npos) << notes[0];
      EXPECT_NE(notes[0].find("'mean/w' is not finite"), std::string::npos) << notes[0];
      ASSERT_TRUE(save(5, bad).ok());
      const auto none = (*folder)->newest(note);
      ASSERT_FALSE(none.ok());
      EXPECT_NE(none.error().to_string().find("no checkpoint is whole"), std::string::npos);
    }
}

}  // namespace
}  // namespace tilewright::train
