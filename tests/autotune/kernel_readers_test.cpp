// Who reads what a kernel writes, through views, too.
#include "autotune/kernel_readers.h"

#include <gtest/gtest.h>

#include "frontends/compiler/compiler.h"
#include "ir/module_text/parser_graph.h"

namespace tilewright::autotune {
namespace {

TEST(KernelReaders, AreThoseOfItsResults) {
  auto graph = ir::parse_graph(R"(graph g {
  input x: f32[64, 64]
  a: f32[64, 64] = softmax(x) {axis = 1}
  const s: i64[1] = [4096]
  v: f32[4096] = reshape(a, s)
  b: f32[4096] = softmax(v) {axis = 0}
  c: f32[64, 64] = matmul(a, x)
  output b as "b"
  output c as "c"
})");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto lower = lower_options({});
  ASSERT_TRUE(lower.ok());
  const auto program = passes::lower(std::move(*graph), *lower);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const auto name = [&](const std::string& part, size_t which) {
    for (const ir::Kernel& k : program->kernels)
      if (k.name.find(part) != std::string::npos && which-- == 0) return k.name;
    ADD_FAILURE() << part;
    return std::string();
  };
  const KernelReaders readers = kernel_readers(*program);
  const std::string first = name("softmax", 0), second = name("softmax", 1),
                    product = name("matmul", 0);
  EXPECT_EQ(readers.at(first), (std::set<std::string>{second, product}));
  EXPECT_EQ(readers.count(second), 0u);
  EXPECT_EQ(readers.count(product), 0u);
}

}  // namespace
}  // namespace tilewright::autotune
