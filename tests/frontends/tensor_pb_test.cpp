// Values in files of protobuf, one by one and in folders as ONNX's tests have them.
#include "frontends/tensor_files/tensor_pb.h"

#include <gtest/gtest.h>

#include "frontends/tensor_files/tensor_elements.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright {
namespace {

HostTensor sample(DType dtype, Shape shape) {
  HostTensor tensor(dtype, std::move(shape));
  for (size_t i = 0; i < tensor.bytes.size(); ++i)
    tensor.bytes[i] = static_cast<uint8_t>(dtype == DType::kBool ? i % 2 : i * 29 + 1);
  return tensor;
}

TEST(TensorPb, EveryDtypeRoundTripsThroughAFolder) {
  ScratchFolder folder;
  std::vector<PbSlot> slots;
  std::vector<HostValue> values;
  for (const DTypeInfo& t : kDTypes) {
    slots.push_back({std::string(t.name), PbKind::kTensor});
    values.push_back(sample(t.dtype, {2, 3}));
  }
  slots.push_back({"scalar", PbKind::kTensor});
  values.push_back(sample(DType::kFloat32, {}));
  ASSERT_TRUE(write_pb_folder(folder / "new/outputs", "output", slots, values).ok());
  auto back = read_pb_folder(folder / "new/outputs", "output", slots);
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  for (size_t i = 0; i < slots.size(); ++i) {
    EXPECT_EQ((*back)[i].first, slots[i].name);
    EXPECT_EQ((*back)[i].second, values[i]) << slots[i].name;
  }
}

// Empty ones and nested ones too; an optional that is there is written as what it holds.
TEST(TensorPb, SequencesAndOptionalsRoundTrip) {
  ScratchFolder folder;
  HostValue two(HostSequence{sample(DType::kFloat32, {2}), sample(DType::kInt64, {3})});
  HostValue nested(HostSequence{two, HostValue(HostSequence{})});
  const std::pair<HostValue, PbKind> cases[] = {
      {two, PbKind::kSequence},
      {nested, PbKind::kSequence},
      {HostValue(HostSequence{}), PbKind::kSequence},
      {HostValue(HostNone{}), PbKind::kOptional},
      {HostValue(sample(DType::kBool, {4})), PbKind::kOptional},
      {two, PbKind::kOptional},
  };
  for (const auto& [value, kind] : cases) {
    ASSERT_TRUE(write_pb(folder / "v.pb", "v", value, kind).ok());
    auto back = read_pb(folder / "v.pb", kind);
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(*back, value);
  }
}

// The kind follows from the graph: writing another would make a file that reads as garbage.
TEST(TensorPb, RefusesValuesOfAnotherKind) {
  ScratchFolder folder;
  HostValue tensor(sample(DType::kFloat32, {2}));
  HostValue sequence(HostSequence{tensor});
  EXPECT_FALSE(write_pb(folder / "v.pb", "v", sequence, PbKind::kTensor).ok());
  EXPECT_FALSE(write_pb(folder / "v.pb", "v", tensor, PbKind::kSequence).ok());
  EXPECT_FALSE(
      write_pb(folder / "v.pb", "v", HostValue(HostSequence{tensor, sequence}), PbKind::kSequence)
          .ok());
  EXPECT_FALSE(write_pb_folder(folder.path(), "output", {{"a"}}, {}).ok());
  HostValue deep = tensor;
  for (int i = 0; i < 40; ++i) deep = HostValue(HostSequence{deep});
  EXPECT_EQ(write_pb(folder / "v.pb", "v", deep, PbKind::kSequence).error().kind,
            ErrorKind::kLimit);
}

onnx_format::TensorProto proto_of(int code, const Shape& dims) {
  onnx_format::TensorProto proto;
  proto.set_data_type(code);
  for (int64_t d : dims) proto.add_dims(d);
  return proto;
}

// The format's typed fields are wider than the elements: f16 by its bits and i8 in int32, u32 in
// uint64.
TEST(TensorElements, TypedFieldsBecomeBytes) {
  auto half = proto_of(10, {2});
  half.add_int32_data(0x3C00);
  half.add_int32_data(0xC000);
  auto tensor = decode_host_tensor(half);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->data<uint16_t>()[1], 0xC000);
  auto bytes = proto_of(3, {2});
  bytes.add_int32_data(-1);
  bytes.add_int32_data(5);
  EXPECT_EQ(decode_host_tensor(bytes)->data<int8_t>()[0], -1);
  auto words = proto_of(12, {1});
  words.add_uint64_data(4000000000u);
  EXPECT_EQ(decode_host_tensor(words)->data<uint32_t>()[0], 4000000000u);
  auto flags = proto_of(9, {2});
  flags.set_raw_data(std::string("\x02\x00", 2));
  EXPECT_EQ(decode_host_tensor(flags)->bytes, (AlignedBytes{1, 0}));
  auto nibbles = proto_of(22, {3});  // i4, two to a byte
  nibbles.add_int32_data(0x21);
  nibbles.add_int32_data(0x03);
  auto packed = decode_typed_data(nibbles, *tensor_layout(nibbles));
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ(*packed, (AlignedBytes{0x21, 0x03}));
}

TEST(TensorElements, RefusesWrongAmountsAndShapes) {
  auto raw = proto_of(1, {2, 2});
  raw.set_raw_data(std::string(12, 'x'));
  EXPECT_EQ(decode_host_tensor(raw).error().message,
            "12 bytes of data, shape [2, 2] of f32 needs 16");
  auto typed = proto_of(7, {3});
  typed.add_int64_data(1);
  EXPECT_EQ(decode_host_tensor(typed).error().message,
            "1 elements of data, shape [3] of i64 needs 3");
  EXPECT_EQ(decode_host_tensor(proto_of(1, {-1})).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(decode_host_tensor(proto_of(1, {1LL << 40, 1LL << 40})).error().kind,
            ErrorKind::kInvalid);
  EXPECT_EQ(decode_host_tensor(proto_of(0, {1})).error().kind, ErrorKind::kInvalid);
  for (int code : {8, 14, 17, 22, 27, 99})
    EXPECT_EQ(decode_host_tensor(proto_of(code, {1})).error().kind, ErrorKind::kUnsupported)
        << code;
}

TEST(TensorPb, EveryTruncationIsRefusedOrShorter) {
  ScratchFolder folder;
  HostValue value(HostSequence{sample(DType::kFloat32, {2}), sample(DType::kInt8, {5})});
  ASSERT_TRUE(write_pb(folder / "v.pb", "v", value, PbKind::kSequence).ok());
  for (size_t n = std::filesystem::file_size(folder / "v.pb"); n-- > 0;) {
    std::filesystem::resize_file(folder / "v.pb", n);
    auto back = read_pb(folder / "v.pb", PbKind::kSequence);
    // A message cut between two fields is a message; it must not pass for the whole one.
    EXPECT_FALSE(back.ok() && *back == value) << n;
  }
  EXPECT_EQ(read_pb(folder / "none.pb", PbKind::kTensor).error().kind, ErrorKind::kIo);
  EXPECT_EQ(read_pb(folder.path(), PbKind::kTensor).error().kind, ErrorKind::kIo);
}

}  // namespace
}  // namespace tilewright
