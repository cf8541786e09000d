// The tables of what ONNX operators take, against each other.
#include <gtest/gtest.h>

#include <set>

#include "frontends/onnx/operand_shapes.h"
#include "frontends/onnx/signatures.h"
#include "frontends/onnx/split_text.h"

namespace tilewright::onnx {
namespace {

std::string name_of(std::string_view operand) {
  return std::string(operand.substr(0, operand.find(':')));
}

TEST(OperandTables, ShapesNameOperandsOfTheirOperators) {
  const auto check = [](std::span<const Signature> signatures,
                        std::span<const OperandShapes> shapes) {
    std::set<std::pair<std::string, std::string>> operands;
    for (const Signature& s : signatures)
      for (const std::string_view word : words(s.operands))
        operands.emplace(std::string(s.op_type), name_of(word));
    for (const OperandShapes& row : shapes)
      for (const std::string_view word : words(row.shapes))
        EXPECT_TRUE(operands.count({std::string(row.op_type), name_of(word)}))
            << row.op_type << " has no operand " << name_of(word);
  };
  check(standard_signatures(), standard_operand_shapes());
  check(microsoft_signatures(), microsoft_operand_shapes());
}

TEST(OperandTables, SignaturesNameAsManyOperandsAsTheyTake) {
  const auto check = [](std::span<const Signature> signatures) {
    for (const Signature& s : signatures) {
      const auto names = words(s.operands);
      const bool many = !names.empty() && names.back().ends_with('*');
      if (many)
        EXPECT_EQ(s.most_inputs, kAny) << s.op_type;
      else
        EXPECT_EQ(s.most_inputs, static_cast<int>(names.size())) << s.op_type;
    }
  };
  check(standard_signatures());
  check(microsoft_signatures());
}

}  // namespace
}  // namespace tilewright::onnx
