// NumPy archives: what this project writes it reads back, what NumPy wrote (files in data/) is
// read, and damaged archives are refused.
#include "frontends/tensor_files/npz.h"

#include <gtest/gtest.h>
#include <zip.h>

#include <cstring>
#include <map>

#include "frontends/tensor_files/npy.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright {
namespace {

std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(TILEWRIGHT_SOURCE_DIR) / "tests/frontends/data" / name;
}

std::map<std::string, HostTensor> by_name(const NamedTensors& tensors) {
  return {tensors.begin(), tensors.end()};
}

// One array of each type that NumPy has, a scalar and an empty one.
NamedTensors samples() {
  NamedTensors tensors;
  for (const DTypeInfo& t : kDTypes) {
    if (t.dtype == DType::kBFloat16) continue;
    HostTensor tensor(t.dtype, {3, 5});
    for (size_t i = 0; i < tensor.bytes.size(); ++i)
      tensor.bytes[i] = static_cast<uint8_t>(t.dtype == DType::kBool ? i % 2 : i * 37);
    tensors.emplace_back(t.name, std::move(tensor));
  }
  tensors.emplace_back("scalar", HostTensor(DType::kInt64, {}));
  std::memset(tensors.back().second.bytes.data(), 3, 8);
  tensors.emplace_back("empty", HostTensor(DType::kFloat32, {2, 0}));
  return tensors;
}

TEST(Npz, RoundTripKeepsEveryBitAndTheOrder) {
  ScratchFolder folder;
  NamedTensors tensors = samples();
  ASSERT_TRUE(write_npz(folder / "a.npz", tensors).ok());
  auto back = read_npz(folder / "a.npz");
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(*back, tensors);
  for (const auto& [name, tensor] : *back)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes.data()) % kHostAlignment, 0u) << name;
}

// Outputs of runs can then be compared as files.
TEST(Npz, WritesTheSameBytesEachTime) {
  ScratchFolder folder;
  ASSERT_TRUE(write_npz(folder / "a.npz", samples()).ok());
  ASSERT_TRUE(write_npz(folder / "b.npz", samples()).ok());
  std::string bytes = read_file(folder / "a.npz");
  EXPECT_EQ(bytes, read_file(folder / "b.npz"));
  // Local header of the first entry: method 0 (stored), time 0, date 1980-01-01.
  EXPECT_EQ(bytes.substr(8, 6), std::string("\0\0\0\0\x21\0", 6));
}

// Every type, both byte orders, column-major, and names with slashes and colons.
TEST(Npz, ReadsArraysThatNumpyStored) {
  auto tensors = read_npz(data("numpy_stored.npz"));
  ASSERT_TRUE(tensors.ok()) << tensors.error().to_string();
  auto all = by_name(*tensors);
  EXPECT_EQ(all.size(), 17u);
  for (const DTypeInfo& t : kDTypes) {
    if (t.dtype == DType::kBool || t.dtype == DType::kBFloat16) continue;
    std::string key{t.name};
    key = key[0] + std::to_string(t.bytes);
    ASSERT_TRUE(all.contains(key)) << key;
    EXPECT_EQ(all[key].dtype, t.dtype);
    EXPECT_EQ(all[key].shape, (Shape{2, 3}));
  }
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(all["f4"].data<float>()[i], static_cast<float>(i));
    EXPECT_EQ(all["u2"].data<uint16_t>()[i], i);
  }
  EXPECT_EQ(all["f2"].data<uint16_t>()[1], 0x3C00);  // 1.0
  EXPECT_EQ(all["bool"].bytes, (AlignedBytes{1, 0, 1}));
  EXPECT_EQ(all["scalar"].data<float>()[0], 2.5f);
  EXPECT_EQ(all["empty"].shape, (Shape{0, 4}));
  for (int i = 0; i < 24; ++i) EXPECT_EQ(all["fortran"].data<int32_t>()[i], i);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(all["big"].data<int32_t>()[i], i);
  EXPECT_TRUE(all.contains("serving_default:0/x"));
}

TEST(Npz, ReadsDeflatedArraysAndAllHeaderFormats) {
  auto deflated = read_npz(data("numpy_deflated.npz"));
  ASSERT_TRUE(deflated.ok()) << deflated.error().to_string();
  for (int i = 0; i < 100; ++i) EXPECT_EQ((*deflated)[0].second.data<float>()[i], i);
  auto formats = read_npz(data("numpy_formats.npz"));
  ASSERT_TRUE(formats.ok()) << formats.error().to_string();
  ASSERT_EQ(formats->size(), 3u);
  for (const auto& [name, tensor] : *formats) EXPECT_EQ(tensor.data<int16_t>()[2], 2) << name;
}

TEST(Npz, RefusesPicklesAndStrings) {
  auto object = read_npz(data("numpy_object.npz"));
  EXPECT_EQ(object.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(object.error().to_string().find("array 'o'"), std::string::npos);
  EXPECT_EQ(read_npz(data("numpy_string.npz")).error().kind, ErrorKind::kUnsupported);
}

// Puts `bytes` under `name` into an archive of its own.
void make_zip(const std::filesystem::path& path,
              const std::vector<std::pair<std::string, std::string>>& entries) {
  zip_t* zip = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  for (const auto& [name, bytes] : entries)
    zip_file_add(zip, name.c_str(), zip_source_buffer(zip, bytes.data(), bytes.size(), 0), 0);
  ASSERT_EQ(zip_close(zip), 0);
}

TEST(Npz, RefusesWrongEntries) {
  ScratchFolder folder;
  std::string header = *format_npy_header(DType::kFloat32, {2});
  auto message = [&](const std::string& name, const std::string& bytes) {
    make_zip(folder / "x.npz", {{name, bytes}});
    auto tensors = read_npz(folder / "x.npz");
    return tensors.ok() ? "read" : tensors.error().message;
  };
  EXPECT_EQ(message("x.npy", header + "12345678"), "read");
  EXPECT_EQ(message("x.npy", header + "1234567"),
            "npy array has 7 bytes of data, shape [2] of f32 needs 8");
  EXPECT_NE(message("x.npy", header + "123456789"), "read");
  EXPECT_NE(message("x.npy", ""), "read");
  EXPECT_NE(message("x.txt", header + "12345678").find("not a .npy array"), std::string::npos);
}

// Replaces every occurrence, which changes local headers and directory alike.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TEST(Npz, RefusesDuplicateNamesAndDamage) {
  ScratchFolder folder;
  NamedTensors two{{"aaaa", HostTensor(DType::kInt32, {2})},
                   {"bbbb", HostTensor(DType::kInt32, {2})}};
  for (auto& [name, tensor] : two) std::memset(tensor.bytes.data(), 0x5A, 8);
  ASSERT_TRUE(write_npz(folder / "x.npz", two).ok());
  std::string bytes = read_file(folder / "x.npz");
  write_file(folder / "x.npz", replaced(bytes, "bbbb", "aaaa"));
  EXPECT_EQ(read_npz(folder / "x.npz").error().message, "two arrays are called 'aaaa'");
  write_file(folder / "x.npz", replaced(bytes, "\x5A\x5A\x5A\x5A", "\x5A\x5A\x5A\x5B"));
  auto damaged = read_npz(folder / "x.npz");
  ASSERT_FALSE(damaged.ok());
  EXPECT_NE(damaged.error().message.find("CRC"), std::string::npos) << damaged.error().message;
}

TEST(Npz, RefusesDeclaredLengthsThatAreNotThere) {
  ScratchFolder folder;
  std::string text(1 << 20, 'x');
  make_zip(folder / "x.npz", {{"x.npy", text}});
  std::string bytes = read_file(folder / "x.npz");
  ASSERT_LT(bytes.size(), text.size() / 100);  // deflated
  for (const std::string& size :
       {std::string("\xFF\xFF\xFF\x7F", 4), std::string("\0\0\0\xF0", 4)}) {
    write_file(folder / "x.npz", replaced(bytes, std::string("\0\0\x10\0", 4), size));
    auto tensors = read_npz(folder / "x.npz");
    ASSERT_FALSE(tensors.ok());
    EXPECT_NE(tensors.error().message.find("zip entry declares"), std::string::npos)
        << tensors.error().message;
  }
}

TEST(Npz, EveryTruncationIsRefused) {
  ScratchFolder folder;
  for (const char* name : {"numpy_stored.npz", "numpy_deflated.npz"}) {
    std::string bytes = read_file(data(name));
    ASSERT_GT(bytes.size(), 500u);
    write_file(folder / name, bytes);
    for (size_t n = bytes.size(); n-- > 0;) {  // cut in place: far faster than to write anew
      std::filesystem::resize_file(folder / name, n);
      ASSERT_FALSE(read_npz(folder / name).ok()) << name << " cut to " << n;
    }
  }
}

TEST(Npz, EveryFlippedByteIsReadOrRefused) {
  ScratchFolder folder;
  std::string bytes = read_file(data("numpy_deflated.npz"));
  size_t refused = 0;
  write_file(folder / "f.npz", bytes);
  std::fstream file(folder / "f.npz", std::ios::binary | std::ios::in | std::ios::out);
  auto put = [&](size_t at, char byte) { file.seekp(static_cast<long>(at)).put(byte).flush(); };
  for (size_t i = 0; i < bytes.size(); ++i) {
    put(i, static_cast<char>(bytes[i] ^ 0xFF));
    refused += !read_npz(folder / "f.npz").ok();
    put(i, bytes[i]);
  }
  EXPECT_TRUE(read_npz(folder / "f.npz").ok());
  EXPECT_GT(refused, bytes.size() / 2);
}

TEST(Npz, NamesTheFileThatCannotBeOpened) {
  auto missing = read_npz("/nonexistent/x.npz");
  EXPECT_EQ(missing.error().kind, ErrorKind::kIo);
  EXPECT_EQ(missing.error().location, "/nonexistent/x.npz");
  EXPECT_FALSE(write_npz("/nonexistent/x.npz", samples()).ok());
  ScratchFolder folder;
  EXPECT_FALSE(write_npz(folder / "x.npz", {}).ok());
  NamedTensors same{{"a", HostTensor(DType::kInt8, {})}, {"a", HostTensor(DType::kInt8, {})}};
  EXPECT_FALSE(write_npz(folder / "x.npz", same).ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "x.npz"));
}

}  // namespace
}  // namespace tilewright
