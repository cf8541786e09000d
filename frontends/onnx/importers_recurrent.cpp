// RNN, GRU and LSTM: one product for the inputs of all steps, then one operator for the steps of
// each direction.
#include <algorithm>
#include <array>
#include <cctype>

#include "frontends/onnx/importers.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Expr;
using ir::ValueId;

struct Cell {
  const char* op;
  int64_t gates;
  std::vector<std::string> activations;  // of one direction, by default
  bool has_cell;                         // LSTM: inputs initial_c and P, output Y_c
  bool quantized =
      false;  // W and R in 8 bits, columns innermost, with their scales and zero points behind P
};

struct Parameter {
  std::string_view activation;
  bool alpha;
  double fallback;
};
// Activations that take alpha or beta, and the values when the node gives none.
constexpr auto kParameters = std::to_array<Parameter>({
    {"affine", true, 1},
    {"affine", false, 0},
    {"leakyrelu", true, 0.01},
    {"thresholdedrelu", true, 1},
    {"scaledtanh", true, 1},
    {"scaledtanh", false, 1},
    {"hardsigmoid", true, 0.2},
    {"hardsigmoid", false, 0.5},
    {"elu", true, 1},
});

struct Activations {
  std::vector<std::string> names;
  std::vector<double> alpha, beta;
};

// The given values are taken in turn by the activations that have such a parameter.
std::vector<double> parameters(const std::vector<std::string>& names,
                               const std::vector<double>& given, bool alpha) {
  std::vector<double> r;
  size_t next = 0;
  for (const std::string& n : names) {
    double value = 0;
    for (const Parameter& p : kParameters)
      if (p.activation == n && p.alpha == alpha)
        value = next < given.size() ? given[next++] : p.fallback;
    r.push_back(value);
  }
  return r;
}

// One node. What does not depend on the step before, X times W for all steps, is one large matrix
// product; the recurrence with R is an operator of its own for each direction.
class Recurrent {
 public:
  Recurrent(NodeImport& n, const Cell& cell)
      : n_(n), cell_(cell), batch_first_(n.int_attr("layout", 0) != 0) {}

  void run() {
    read();
    std::vector<std::vector<ValueId>> per_direction;
    for (int64_t d = 0; d < directions_; ++d) per_direction.push_back(direction(d));
    const size_t outputs = cell_.has_cell ? 3 : 2;
    for (size_t k = 0; k < outputs; ++k) {
      if (!n_.wants(static_cast<int>(k))) continue;
      std::vector<ValueId> parts;
      for (const auto& p : per_direction) parts.push_back(p[k]);
      n_.out(static_cast<int>(k), k == 0 ? join_sequences(parts) : join_states(parts));
    }
  }

 private:
  void read() {
    x_ = n_.required_stored(0);
    w_ = n_.required_stored(1);
    r_ = n_.required_stored(2);
    if (n_.rank(x_) != 3 || n_.rank(w_) != 3 || n_.rank(r_) != 3)
      n_.fail("X, W and R must have rank 3, found " + to_string(n_.type(x_)) + ", " +
              to_string(n_.type(w_)) + " and " + to_string(n_.type(r_)));
    if (batch_first_) x_ = n_.transpose(x_, {1, 0, 2});
    direction_ = n_.string_attr("direction", "forward");
    if (direction_ != "forward" && direction_ != "reverse" && direction_ != "bidirectional")
      n_.fail("direction '" + direction_ + "'");
    directions_ = direction_ == "bidirectional" ? 2 : 1;
    auto count = ir::as_int(n_.dim(w_, 0)),
         hidden = ir::as_int(n_.dim(r_, cell_.quantized ? 1 : 2));
    if (!count || !hidden) n_.needs_value("the hidden size is not known at compile time");
    if (*count != directions_)
      n_.fail("W is " + to_string(n_.type(w_)) + " for " + std::to_string(directions_) +
              " directions");
    hidden_ = *hidden;
    if (n_.int_attr("hidden_size", hidden_) != hidden_)
      n_.fail("hidden_size " + std::to_string(n_.int_attr("hidden_size", 0)) + ", R is " +
              to_string(n_.type(r_)));
    read_activations();
    read_lengths();
  }
  void read_activations() {
    all_.names = n_.strings_attr("activations");
    if (all_.names.empty())
      for (int64_t d = 0; d < directions_; ++d)
        all_.names.insert(all_.names.end(), cell_.activations.begin(), cell_.activations.end());
    for (std::string& a : all_.names)
      std::transform(a.begin(), a.end(), a.begin(),
                     [](unsigned char c) { return std::tolower(c); });
    if (all_.names.size() != cell_.activations.size() * static_cast<size_t>(directions_))
      n_.fail("expected " +
              std::to_string(cell_.activations.size() * static_cast<size_t>(directions_)) +
              " activations, found " + std::to_string(all_.names.size()));
    all_.alpha = parameters(all_.names, n_.floats_attr("activation_alpha"), true);
    all_.beta = parameters(all_.names, n_.floats_attr("activation_beta"), false);
  }
  // Sequences that all have the full length need no lengths.
  void read_lengths() {
    lens_ = n_.in(4);
    if (lens_ == kNone) return;
    auto known = n_.known_ints(lens_);
    auto seq = ir::as_int(n_.dim(x_, 0));
    if (known && seq &&
        std::all_of(known->begin(), known->end(), [&](int64_t l) { return l == *seq; }))
      lens_ = kNone;
    lens_ = n_.within(lens_, n_.dim(x_, 0) + 1, "an element of 'sequence_lens'");
  }

  // Row d of a value with one row for each direction, without that dimension.
  ValueId row(ValueId v, int64_t d, int axis = 0) {
    if (v == kNone) return kNone;
    if (directions_ > 1) v = n_.slice(v, axis, d, d + 1);
    std::vector<Expr> dims = n_.type(v).dims;
    dims.erase(dims.begin() + axis);
    return n_.reshape(v, dims);
  }
  ValueId initial(int input, int64_t d) { return row(n_.in(input), d, batch_first_ ? 1 : 0); }

  // Outputs of one direction: Y, Y_h and, of an LSTM, Y_c, all without the dimension of directions.
  std::vector<ValueId> direction(int64_t d) {
    const bool reset_after = n_.int_attr("linear_before_reset", 0) != 0 && cell_.gates == 3;
    ValueId recurrent_bias = kNone;
    ValueId projected = project(d, reset_after, recurrent_bias);
    std::vector<ValueId> inputs{projected, recurrent_weights(d), initial(5, d), lens_};
    if (cell_.has_cell) {
      inputs.push_back(initial(6, d));
      inputs.push_back(row(n_.in(7), d));
      if (by_bytes()) add_byte_weights(inputs, d);
    } else if (cell_.gates == 3) {
      inputs.push_back(recurrent_bias);
    }
    while (inputs.back() == kNone) inputs.pop_back();
    return n_.ops(cell_.op, inputs, attributes(d), cell_.has_cell ? 3 : 2);
  }
  ir::Attributes attributes(int64_t d) {
    const auto count = static_cast<int64_t>(cell_.activations.size());
    auto part = [&](const auto& all) {
      return std::decay_t<decltype(all)>(all.begin() + d * count, all.begin() + (d + 1) * count);
    };
    ir::Attributes a{
        {"activations", part(all_.names)}, {"alpha", part(all_.alpha)}, {"beta", part(all_.beta)}};
    if (direction_ == "reverse" || d == 1) a["reverse"] = int64_t{1};
    if (n_.has_attr("clip") && n_.float_attr("clip", 0) > 0) a["clip"] = n_.float_attr("clip", 0);
    if (cell_.quantized && !by_bytes()) a["quantize_state"] = int64_t{1};
    for (const char* flag : {"linear_before_reset", "input_forget"})
      if (n_.int_attr(flag, 0)) a[flag] = int64_t{1};
    return a;
  }
  // Are the products with R products of bytes?
  bool by_bytes() {
    return cell_.quantized && n_.dtype(r_) == DType::kInt8 &&
           n_.dtype(n_.required(10)) == DType::kFloat32 && is_known_zero(n_, n_.in(11));
  }
  // The scale of each column of R (layers of one size then share their kernel) and their sums.
  void add_byte_weights(std::vector<ValueId>& inputs, int64_t d) {
    ValueId wide = n_.cast(row(r_, d), DType::kInt32);
    inputs.push_back(n_.op("expand", {row(n_.required(10), d), n_.ints({cell_.gates * hidden_})}));
    inputs.push_back(
        n_.op("reduce_sum", {wide}, {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{0}}}));
  }
  // [h, gates * h]; those in 8 bits, unless bytes will do, as the numbers they stand for.
  ValueId recurrent_weights(int64_t d) {
    ValueId r = row(r_, d);
    if (!cell_.quantized) return n_.transpose(r, {1, 0});
    if (by_bytes()) return r;
    ValueId scale = row(n_.required(10), d), zero = row(n_.in(11), d);
    return n_.op("dequantize", zero == kNone ? std::vector<ValueId>{r, scale}
                                             : std::vector<ValueId>{r, scale, zero});
  }
  // The product for the inputs of all steps at once.
  ValueId times_weights(ValueId x, int64_t d) {
    if (!cell_.quantized) return n_.product("matmul", {x, n_.transpose(row(w_, d), {1, 0})});
    return dynamically_quantized_matmul(n_, x, row(w_, d), row(n_.required(8), d),
                                        row(n_.in(9), d));
  }
  // [s, b, gates * h]: X times W plus the biases. When r is applied after the product, the bias of
  // R for n stays apart.
  ValueId project(int64_t d, bool reset_after, ValueId& recurrent_bias) {
    const Expr s = n_.dim(x_, 0), b = n_.dim(x_, 1);
    const int64_t columns = cell_.gates * hidden_;
    ValueId flat = n_.reshape(x_, {simplify(s * b), n_.dim(x_, 2)});
    ValueId y = times_weights(flat, d);
    if (n_.has(3)) {
      ValueId bias = row(n_.in(3), d);
      n_.require_equal(n_.dim(bias, 0), 2 * columns,
                       "B must have " + std::to_string(2 * columns) + " columns");
      ValueId of_w = n_.slice(bias, 0, 0, columns), of_r = n_.slice(bias, 0, columns, 2 * columns);
      if (reset_after) {
        recurrent_bias = n_.slice(of_r, 0, 2 * hidden_, columns);
        ValueId sum =
            n_.op("add", {n_.slice(of_w, 0, 0, 2 * hidden_), n_.slice(of_r, 0, 0, 2 * hidden_)});
        bias =
            n_.op("concat", {sum, n_.slice(of_w, 0, 2 * hidden_, columns)}, {{"axis", int64_t{0}}});
      } else {
        bias = n_.op("add", {of_w, of_r});
      }
      y = n_.op("add", {y, bias});
    }
    return n_.reshape(y, {s, b, Expr(columns)});
  }

  ValueId joined(const std::vector<ValueId>& parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : n_.op("concat", parts, {{"axis", axis}});
  }
  // Y: [s, directions, b, h], batch first: [b, s, directions, h]
  ValueId join_sequences(std::vector<ValueId> parts) {
    const int at = batch_first_ ? 2 : 1;
    for (ValueId& v : parts) {
      if (batch_first_) v = n_.transpose(v, {1, 0, 2});
      std::vector<Expr> dims = n_.type(v).dims;
      dims.insert(dims.begin() + at, Expr(1));
      v = n_.reshape(v, dims);
    }
    return joined(parts, at);
  }
  // Y_h and Y_c: [directions, b, h], batch first: [b, directions, h]
  ValueId join_states(std::vector<ValueId> parts) {
    const int at = batch_first_ ? 1 : 0;
    for (ValueId& v : parts) {
      std::vector<Expr> dims = n_.type(v).dims;
      dims.insert(dims.begin() + at, Expr(1));
      v = n_.reshape(v, dims);
    }
    return joined(parts, at);
  }

  NodeImport& n_;
  const Cell& cell_;
  const bool batch_first_;
  ValueId x_ = kNone, w_ = kNone, r_ = kNone, lens_ = kNone;
  std::string direction_;
  int64_t directions_ = 1, hidden_ = 0;
  Activations all_;
};

void rnn(NodeImport& n) { Recurrent(n, {"rnn_steps", 1, {"tanh"}, false}).run(); }
void gru(NodeImport& n) { Recurrent(n, {"gru_steps", 3, {"sigmoid", "tanh"}, false}).run(); }
void lstm(NodeImport& n) {
  Recurrent(n, {"lstm_steps", 4, {"sigmoid", "tanh", "tanh"}, true}).run();
}

// The inputs and each step's state go into their products in 8 bits, by their range.
void dynamic_quantize_lstm(NodeImport& n) {
  Recurrent(n, {"lstm_steps", 4, {"sigmoid", "tanh", "tanh"}, true, true}).run();
}

constexpr auto kRecurrentRows = std::to_array<OpMapping>({
    {"", "RNN", 1, rnn, Form::kFormula},
    {"", "GRU", 1, gru, Form::kFormula},
    {"", "LSTM", 1, lstm, Form::kFormula},
    {"com.microsoft", "DynamicQuantizeLSTM", 1, dynamic_quantize_lstm},
});

}  // namespace

std::span<const OpMapping> recurrent_mappings() { return kRecurrentRows; }

}  // namespace tilewright::onnx
