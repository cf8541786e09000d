// Random numbers. Each element of a result is a function of a key, a stream and the element's
// position alone, worked out in integers: it does not depend on threads, vectors or the order of
// anything, and two runs under one key give the same bits.
//
// The generator is Philox4x32-10 of Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy
// as 1, 2, 3 (SC 2011): ten rounds of multiplications over a counter, here the position (64 bits)
// and the stream (64 bits). The key is a `seed` of the model, or the run's own (run_key), and the
// stream the number of the node; inside a loop it is mixed with the iteration (random_key).
// In training, samples have numbers of their own: the counter then is the position inside of a sample
// (32 bits), and which sample of the data it is (64 bits, half of them mixed into the stream), so that
// what is drawn for it depends neither on its place in the batch nor on who else is there.
#include <array>
#include <cmath>

#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"

namespace tilewright::ir {
namespace {

constexpr std::string_view kSource = "https://doi.org/10.1145/2063384.2063405";
constexpr DType kWord = DType::kUInt32;
constexpr int64_t kReach = int64_t{1} << 32;  // of one word

Expr word(int64_t v) { return int_imm(v, kWord); }
Expr shifted(const Expr& x, int64_t by) {
  return binary(BinaryOp::kShr, x, int_imm(by, x.dtype()));
}
Expr low_word(const Expr& x) { return cast(kWord, x); }
Expr exclusive_or(const Expr& a, const Expr& b) { return binary(BinaryOp::kXor, a, b); }

// The low and the high word of a product.
std::array<Expr, 2> product(int64_t factor, const Expr& x) {
  const Expr p = int_imm(factor, DType::kUInt64) * cast(DType::kUInt64, x);
  return {low_word(p), low_word(shifted(p, 32))};
}

using RandomWords = std::array<Expr, 4>;

// One block of the cipher-like function: four words in, four out, ten rounds of 32 x 32 -> 64 bit
// multiplications and xors, the key bumped by Weyl constants. Counter-based: no state to carry, so
// any element may be computed by any thread, or twice.
RandomWords philox(const RandomWords& counter, const std::array<Expr, 2>& key) {
  constexpr int kRounds = 10;
  constexpr int64_t kFactors[] = {0xD2511F53, 0xCD9E8D57}, kWeyl[] = {0x9E3779B9, 0xBB67AE85};
  RandomWords c = counter;
  for (int64_t round = 0; round < kRounds; ++round) {
    auto k = [&](size_t i) { return key[i] + word(round * kWeyl[i] & 0xffffffff); };
    const auto first = product(kFactors[0], c[0]), second = product(kFactors[1], c[2]);
    c = {exclusive_or(exclusive_or(second[1], c[1]), k(0)), second[0],
         exclusive_or(exclusive_or(first[1], c[3]), k(1)), first[0]};
  }
  return c;
}

std::array<Expr, 2> words_of(const Buffer& b) { return {load(b, {Expr(0)}), load(b, {Expr(1)})}; }
bool is_pair_of_words(const NodeView& c, int operand) {
  return c.type(operand).dtype == kWord && c.rank(operand) == 1 && c.agree(c.dim(operand, 0), 2);
}

// --- keys --------------------------------------------------------------------------------------

Status infer_run_key(InferContext& c) {
  c.set_output(0, kWord, {Expr(2)});
  return {};
}
Status infer_random_key(InferContext& c) {
  if (!is_pair_of_words(c, 0)) return c.error("key is " + to_string(c.type(0)));
  if (!(c.type(1).dtype == DType::kInt64 && c.rank(1) == 0) && !is_pair_of_words(c, 1))
    return c.error("number is " + to_string(c.type(1)));
  c.set_output(0, kWord, {Expr(2)});
  return {};
}
void compute_random_key(ComputeContext& c) {
  std::array<Expr, 2> number;
  if (c.rank(1) == 0) {
    const Expr n = load(c.in(1), {});
    number = {low_word(n), low_word(shifted(n, 32))};
  } else {
    number = words_of(c.in(1));
  }
  // No position is as far.
  const RandomWords w =
      philox({number[0], number[1], word(0xffffffff), word(0xffffffff)}, words_of(c.in(0)));
  c.b.compute(c.out(), [&](const Axes& i) { return select(eq(i[0], Expr(0)), w[0], w[1]); }, "key");
}

// --- numbers -----------------------------------------------------------------------------------

// Dimension `axis` holds the same number of rows for each of the samples.
Status check_samples(const InferContext& c, const std::vector<Expr>& shape) {
  const TensorType& t = c.type(3);
  const int64_t axis = c.attr_int("axis", 0);
  if (t.dtype != DType::kInt64 || t.rank() != 1)
    return c.error("samples is " + to_string(t) + ", expected i64 [batch]");
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
    return c.error("axis " + std::to_string(axis) + " of a result of rank " +
                   std::to_string(shape.size()));
  const auto batch = as_int(t.dims[0]), rows = as_int(shape[static_cast<size_t>(axis)]);
  if (!batch || !rows) return c.needs_value("the number of samples is not known at compile time");
  if (*batch == 0 ? *rows != 0 : *rows % *batch != 0)
    return c.error("dimension " + std::to_string(axis) + " of the result has " +
                   std::to_string(*rows) + " rows for " + std::to_string(*batch) + " samples");
  // One word counts the positions inside of a sample.
  Expr count = 1;
  for (const Expr& d : shape) count = count * d;
  const auto all = as_int(simplify(count));
  if (!all || (*batch > 0 && *all / *batch >= kReach))
    return c.error("a sample would draw 2^32 numbers or more");
  return {};
}
Status infer_random(InferContext& c) {
  for (int k : {0, 1})
    if (!is_pair_of_words(c, k))
      return c.error("operand " + std::to_string(k) + " is " + to_string(c.type(k)) +
                     ", expected two words");
  const auto to = dtype_from_name(c.attr_string("to", "f32"));
  const auto shape = c.has(2) ? known_dims(c, 2) : c.attr_extents("shape");
  if (to != DType::kFloat32 && to != DType::kFloat64)
    return c.error("numbers of type '" + c.attr_string("to") + "', expected f32 or f64");
  if (!shape && c.has(2)) return c.needs_value("shape is not known at compile time");
  if (!shape) return c.error("no shape is given");
  const int64_t bits = c.attr_int("bits", 24);
  if (bits < 1 || bits > 24) return c.error(std::to_string(bits) + " bits, expected 1 to 24");
  if (c.has(3)) TW_RETURN_IF_ERROR(check_samples(c, *shape));
  c.set_output(0, *to, *shape);
  return {};
}
// The words of the element at `i` of what is drawn by sample.
RandomWords words_by_sample(const ComputeContext& c, const Axes& i) {
  const std::vector<Expr>& shape = c.out()->shape;
  const auto axis = static_cast<size_t>(c.attr_int("axis", 0));
  const int64_t batch = std::max<int64_t>(*as_int(c.in(3)->shape[0]), 1);
  const Expr rows = *as_int(shape[axis]) / batch;
  Expr position = 0;
  for (size_t d = 0; d < i.size(); ++d)
    position = d == axis ? position * rows + floormod(i[d], rows) : position * shape[d] + i[d];
  const Expr sample = load(c.in(3), {simplify(floordiv(i[axis], rows))});
  const auto stream = words_of(c.in(1));
  return philox({low_word(simplify(position)), low_word(sample), stream[0],
                 exclusive_or(stream[1], low_word(shifted(sample, 32)))},
                words_of(c.in(0)));
}
// The words of the element at `i`.
RandomWords words_at(const ComputeContext& c, const Axes& i) {
  if (c.has(3)) return words_by_sample(c, i);
  const std::vector<Expr>& shape = c.out()->shape;
  Expr position = 0, count = 1;
  for (size_t d = 0; d < i.size(); ++d) {
    position = position * shape[d] + i[d];
    count = count * shape[d];
  }
  position = simplify(position);
  const bool near = as_int(simplify(count)).value_or(kReach) < kReach;
  const auto stream = words_of(c.in(1));
  return philox(
      {low_word(position), near ? word(0) : low_word(shifted(position, 32)), stream[0], stream[1]},
      words_of(c.in(0)));
}
// The upper `bits` of a word, as a number below 2^bits.
Expr upper(const Expr& w, int64_t bits) {
  return cast(DType::kFloat32, cast(DType::kInt32, shifted(w, 32 - bits)));
}
// 53 bits of two words, as a number below 2^53.
Expr joined(const Expr& a, const Expr& b) {
  auto wide = [](const Expr& w) { return cast(DType::kInt64, w); };
  return cast(DType::kFloat64, wide(a) * Expr(int64_t{1} << 21) + wide(shifted(b, 11)));
}
// A multiple of 2^-bits in [0, 1).
Expr uniform(const RandomWords& w, DType t, int64_t bits) {
  if (t == DType::kFloat64) return joined(w[0], w[1]) * constant(0x1p-53, t);
  return upper(w[0], bits) * constant(std::ldexp(1.0, -static_cast<int>(bits)), t);
}
// Box and Muller's polar form: a radius from (0, 1] and an angle from [0, 2 pi). Of f32 the radius
// has 31 bits: numbers up to 6.6 occur.
Expr normal(const RandomWords& w, DType t) {
  auto number = [t](double v) { return constant(v, t); };
  const bool wide = t == DType::kFloat64;
  const Expr u = wide ? joined(w[0], w[1]) * number(0x1p-53) + number(0x1p-54)
                      : upper(w[0], 31) * number(0x1p-31) + number(0x1p-32),
             angle = wide ? joined(w[2], w[3]) * number(2 * M_PI * 0x1p-53)
                          : upper(w[1], 24) * number(2 * M_PI * 0x1p-24);
  return unary(UnaryOp::kSqrt, number(-2) * unary(UnaryOp::kLog, u)) * unary(UnaryOp::kCos, angle);
}

void compute_random_uniform(ComputeContext& c) {
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        return uniform(words_at(c, i), c.out()->dtype, c.attr_int("bits", 24));
      },
      "random_uniform");
}
void compute_random_normal(ComputeContext& c) {
  c.b.compute(
      c.out(), [&](const Axes& i) { return normal(words_at(c, i), c.out()->dtype); },
      "random_normal");
}
}  // namespace

const std::vector<OpDef>& random_ops() {
  static const TensorType pair{kWord, {2}};
  static const std::vector<OperandDef> operands{
      {"key"}, {"stream"}, {"shape", OperandDef::kOptional}, {"samples", OperandDef::kOptional}};
  static const AttributeDef type{"to", AttributeKind::kString, "f32 or f64; default f32"},
      shape{"shape", AttributeKind::kExtents, "of y, where the operand is absent"},
      axis{"axis", AttributeKind::kInt,
           "of samples (i64 [batch], which of the data), if there are"};
  static const Attributes small{{"shape", Extents{{Expr(3), Expr(37)}}}};
  static const std::vector<OpDef> ops{
      {.name = "run_key",
       .summary = "the two words that stand for the seed of the session and the number of the run",
       .outputs = "key",
       .infer_type = infer_run_key,
       .source = "tilewright"},
      {.name = "random_key",
       .summary = "a key of its own for each number (i64, or two words of u32) under a key",
       .operands = {{"key"}, {"number"}},
       .infer_type = infer_random_key,
       .compute = compute_random_key,
       .fold = false,
       .example = {.inputs = {pair, {DType::kInt64, {}}}},
       .source = kSource},
      {.name = "random_uniform",
       .summary = "numbers in [0, 1), each determined by key, stream and position alone",
       .operands = operands,
       .attributes = {type,
                      shape,
                      axis,
                      {"bits", AttributeKind::kInt, "of f32: multiples of 2^-bits; default 24"}},
       .fusion = FusionKind::kInjective,
       .costly = true,
       .infer_type = infer_random,
       .compute = compute_random_uniform,
       .fold = false,
       .example = {.inputs = {pair, pair}, .attributes = small},
       .source = kSource},
      {.name = "random_normal",
       .summary = "numbers of mean 0 and variance 1, normally distributed, each determined by key, "
                  "stream and position alone",
       .operands = operands,
       .attributes = {type, shape, axis},
       .fusion = FusionKind::kInjective,
       .costly = true,
       .infer_type = infer_random,
       .compute = compute_random_normal,
       .fold = false,
       .example = {.inputs = {pair, pair}, .attributes = small},
       .source = kSource},
  };
  return ops;
}

}  // namespace tilewright::ir
