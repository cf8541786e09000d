#include <gtest/gtest.h>

#include <cstring>

#include "tests/frontends/model_builder.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright {
namespace {

// small_model whose weight stands in an external file, written to FOLDER/inside/model.onnx.
class ExternalDataTest : public testing::Test {
 protected:
  ExternalDataTest() {
    std::filesystem::create_directories(scratch_ / "inside/parts");
    const float data[5] = {-1, 1, 2, 3, 4};
    std::string bytes(reinterpret_cast<const char*>(data), sizeof(data));
    write_file(scratch_ / "inside/parts/w.bin", bytes);
    write_file(scratch_ / "secret.bin", bytes);
  }

  Result<std::unique_ptr<OnnxModel>> read(
      const std::vector<std::pair<std::string, std::string>>& entries) {
    onnx_format::ModelProto proto = small_model();
    auto* w = proto.mutable_graph()->mutable_initializer(0);
    w->clear_raw_data();
    w->set_data_location(onnx_format::TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      auto* entry = w->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    write_file(scratch_ / "inside/model.onnx", proto.SerializeAsString());
    return read_model(scratch_ / "inside/model.onnx");
  }

  std::string message(const std::string& location, const std::string& offset = "4",
                      const std::string& length = "16") {
    auto model = read({{"location", location}, {"offset", offset}, {"length", length}});
    return model.ok() ? "read" : model.error().to_string();
  }

  ScratchFolder scratch_;
};

#define EXPECT_SAYS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << "said: " << (text)

TEST_F(ExternalDataTest, IsMappedFromTheModelsFolder) {
  auto model = read({{"location", "parts/w.bin"}, {"offset", "4"}, {"length", "16"}});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const TensorView& w = (*model)->graph.initializers.at("w");
  ASSERT_EQ(w.bytes, 16u);
  float last = 0;
  std::memcpy(&last, w.data + 12, 4);
  EXPECT_EQ(last, 4);
  EXPECT_TRUE(read({{"location", "parts/w.bin"}, {"offset", "4"}}).ok());  // to the end
  std::filesystem::create_symlink("parts/w.bin", scratch_ / "inside/link.bin");
  EXPECT_EQ(message("link.bin"), "read");
}

TEST_F(ExternalDataTest, OutsideTheFolderIsRefused) {
  EXPECT_SAYS(message("../secret.bin"), "'..' is not allowed");
  EXPECT_SAYS(message("parts/../../secret.bin"), "'..' is not allowed");
  EXPECT_SAYS(message((scratch_ / "secret.bin").string()), "must be relative");
  std::filesystem::create_symlink("../secret.bin", scratch_ / "inside/leak.bin");
  EXPECT_SAYS(message("leak.bin"), "leads outside");
  std::filesystem::create_directory_symlink("..", scratch_ / "inside/up");
  EXPECT_SAYS(message("up/secret.bin"), "leads outside");
  // A folder whose name begins as the model's does is another folder.
  std::filesystem::create_directories(scratch_ / "inside2");
  write_file(scratch_ / "inside2/w.bin", std::string(20, 'x'));
  std::filesystem::create_symlink("../inside2/w.bin", scratch_ / "inside/sibling.bin");
  EXPECT_SAYS(message("sibling.bin"), "leads outside");
}

TEST_F(ExternalDataTest, WrongRangesAreRefused) {
  EXPECT_SAYS(message("parts/w.bin", "5"), "reach beyond its 20 bytes");
  EXPECT_SAYS(message("parts/w.bin", "21", "0"), "reach beyond its 20 bytes");
  EXPECT_SAYS(message("parts/w.bin", "8", "18446744073709551615"), "reach beyond");
  EXPECT_SAYS(message("parts/w.bin", "18446744073709551615"), "reach beyond");
  EXPECT_SAYS(message("parts/w.bin", "-4"), "offset '-4' is not a number");
  EXPECT_SAYS(message("parts/w.bin", "99999999999999999999"), "is not a number");
  EXPECT_SAYS(message("parts/w.bin", "4", "12"), "12 bytes of data, shape [2, 2] of f32 needs 16");
  EXPECT_SAYS(message("parts"), "is a folder, not a file");
  EXPECT_SAYS(message("none.bin"), "'none.bin': No such file");
  EXPECT_SAYS(message(""), "not a file name");
}

}  // namespace
}  // namespace tilewright
