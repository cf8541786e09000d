#include "frontends/tensor_files/npy.h"

#include <gtest/gtest.h>

#include "frontends/tensor_files/npy_file.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright {
namespace {

std::string npy(const std::string& text, char major = 1) {
  std::string header{"\x93NUMPY", 6};
  header += major;
  header += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i)
    header += static_cast<char>(text.size() >> (8 * i));
  return header + text;
}

Result<NpyHeader> parse(const std::string& header) {
  return parse_npy_header({reinterpret_cast<const uint8_t*>(header.data()), header.size()});
}

TEST(Npy, ReadsWhatNumpyWrites) {
  for (char major : {1, 2, 3}) {
    auto header =
        parse(npy("{'descr': '>i2', 'fortran_order': True, 'shape': (3, 4), }   \n", major));
    ASSERT_TRUE(header.ok()) << header.error().to_string();
    EXPECT_EQ(header->dtype, DType::kInt16);
    EXPECT_TRUE(header->big_endian);
    EXPECT_TRUE(header->fortran_order);
    EXPECT_EQ(header->shape, (Shape{3, 4}));
    EXPECT_EQ(header->data_bytes, 24u);
  }
}

TEST(Npy, FormatsWhatItParses) {
  Shape long_shape(64, 1);
  EXPECT_EQ(format_npy_header(DType::kInt8, Shape(65, 1)).error().kind, ErrorKind::kLimit);
  for (const DTypeInfo& t : kDTypes) {
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 0, 3}, long_shape}) {
      auto text = format_npy_header(t.dtype, shape);
      if (t.dtype == DType::kBFloat16) {
        EXPECT_EQ(text.error().kind, ErrorKind::kUnsupported);
        continue;
      }
      EXPECT_EQ(text->size() % 64, 0u);
      auto header = parse(*text);
      ASSERT_TRUE(header.ok()) << header.error().to_string();
      EXPECT_EQ(header->dtype, t.dtype);
      EXPECT_EQ(header->shape, shape);
      EXPECT_FALSE(header->big_endian);
    }
  }
}

TEST(Npy, EveryTruncationIsRefused) {
  std::string whole = *format_npy_header(DType::kFloat32, {2, 3});
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(parse(whole.substr(0, n)).ok()) << n;
}

TEST(Npy, HostileHeadersAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not a dictionary"},
      {"{'descr': '<f4', 'fortran_order': False}", "are needed"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2), }", "not a tuple"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,-3), }", "non-negative"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-0,), }", "non-negative"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "non-neg"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,), }", "too large"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
       "too large"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", "neither True nor False"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "twice"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", "unknown key 'x'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } import os",
       "after the dictionary"},
      {"{'descr' '<f4', 'fortran_order': False, 'shape': (2,), }", "expected 'key': value"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", "not a tuple"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "never run"},
      {"{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }", "'<U3' is not supported"},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", "'<c8' is not supported"},
      {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,), }", "structured"},
  };
  for (const auto& [text, part] : cases) {
    auto header = parse(npy(text));
    ASSERT_FALSE(header.ok()) << text;
    EXPECT_NE(header.error().message.find(part), std::string::npos) << header.error().message;
  }
  EXPECT_EQ(parse(npy("{}", 4)).error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(parse(npy(std::string(70000, ' '), 2)).error().kind, ErrorKind::kLimit);
  std::string ranks = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 65; ++i) ranks += "1, ";
  EXPECT_EQ(parse(npy(ranks + "), }")).error().kind, ErrorKind::kLimit);
}

// A whole file: foreign byte order and layout come out as ours, and lengths that do not fit are refused.
TEST(NpyFile, IsReadOrRefused) {
  const ScratchFolder scratch;
  const auto read = [&](const std::string& bytes) {
    const auto path = scratch / "a.npy";
    std::ofstream(path, std::ios::binary) << bytes;
    return read_npy(path);
  };
  const std::string header = npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }   \n");
  const std::string data("\0\1\0\4\0\2\0\5\0\3\1\0", 12);
  const auto t = read(header + data);
  ASSERT_TRUE(t.ok()) << t.error().to_string();
  EXPECT_EQ(t->shape, (Shape{2, 3}));
  const int16_t expected[] = {1, 2, 3, 4, 5, 256};
  for (int64_t k = 0; k < 6; ++k) EXPECT_EQ(t->data<int16_t>()[k], expected[k]) << k;
  for (const std::string& bad : {std::string(), header.substr(0, 9), header.substr(0, 30), header,
                                 header + data.substr(1), header + data + "x"}) {
    const auto refused = read(bad);
    ASSERT_FALSE(refused.ok()) << bad.size();
    EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
    EXPECT_NE(refused.error().to_string().find("a.npy"), std::string::npos);
  }
  EXPECT_EQ(read_npy(scratch / "none.npy").error().kind, ErrorKind::kIo);
}

}  // namespace
}  // namespace tilewright
