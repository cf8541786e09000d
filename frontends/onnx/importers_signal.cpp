// Signal processing: windows, mel filters, Fourier transforms. A transform of known length is a
// linear map: a matrix product with a constant matrix; a short-time transform is a convolution with
// the rows of that matrix.
#include <array>
#include <cmath>

#include "frontends/onnx/importers.h"
#include "frontends/onnx/node_import.h"
#include "frontends/tensor_files/element_type.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Expr;
using ir::ValueId;

// A transform as a dense matrix costs n^2, against n log n of an FFT. Models transform frames of
// some hundred samples, where the matrix product is fast; beyond this size it is refused.
constexpr int64_t kMostMatrixElements = int64_t{1} << 26;

ValueId f64_constant(NodeImport& n, Shape shape, const std::vector<double>& values) {
  return n.constant(ir::make_constant_of(DType::kFloat64, std::move(shape), values));
}
// Attribute output_datatype of windows and filters, f32 by default.
DType output_type(NodeImport& n) {
  auto t = dtype_from_onnx(static_cast<int>(n.int_attr("output_datatype", 1)));
  if (!t) n.unsupported("element type " + onnx_element_name(n.int_attr("output_datatype", 1)));
  return *t;
}
// Of what is computed here, element by element.
constexpr int64_t kMostKnownElements = int64_t{1} << 22;

// A size that shapes depend on, and that therefore must be known.
int64_t known_scalar(NodeImport& n, int input, const char* what) {
  auto v = n.must_know_ints(n.required(input), what);
  if (v.size() != 1)
    n.fail(std::string(what) + " has " + std::to_string(v.size()) + " elements, expected one");
  if (v[0] > kMostKnownElements)
    n.fail(std::string(what) + " is " + std::to_string(v[0]) + ", expected at most " +
           std::to_string(kMostKnownElements));
  return v[0];
}

// a0 - a1 cos(x) + a2 cos(2 x), x from 0 to 2 pi.
void cosine_window(NodeImport& n, double a0, double a1, double a2) {
  const int64_t size = known_scalar(n, 0, "the size of the window");
  if (size < 0) n.fail("size " + std::to_string(size));
  const int64_t period = std::max<int64_t>(n.int_attr("periodic", 1) ? size : size - 1, 1);
  std::vector<double> w;
  for (int64_t i = 0; i < size; ++i) {
    const double x = 2 * M_PI * static_cast<double>(i) / static_cast<double>(period);
    w.push_back(a0 - a1 * std::cos(x) + a2 * std::cos(2 * x));
  }
  n.out(0, n.cast(f64_constant(n, {size}, w), output_type(n)));
}
void hann_window(NodeImport& n) { cosine_window(n, 0.5, 0.5, 0); }
void hamming_window(NodeImport& n) { cosine_window(n, 25.0 / 46, 21.0 / 46, 0); }
void blackman_window(NodeImport& n) { cosine_window(n, 0.42, 0.5, 0.08); }

// Triangles over the bins of a spectrum, their corners evenly spaced on the mel scale: [bins,
// filters].
void mel_weight_matrix(NodeImport& n) {
  const int64_t filters = known_scalar(n, 0, "num_mel_bins"),
                length = known_scalar(n, 1, "dft_length");
  if (filters < 1 || length < 1)
    n.fail(std::to_string(filters) + " filters for a transform of length " +
           std::to_string(length));
  const int64_t bins = length / 2 + 1;
  auto number = [&](int i) {
    return V{n, n.reshape(n.cast(n.required(i), DType::kFloat64), std::vector<int64_t>{})};
  };
  V rate = number(2), low = number(3), high = number(4);
  auto mel = [](V hertz) { return apply("log", hertz / 700 + 1) * (2595 / std::log(10.0)); };
  std::vector<double> steps, rows;
  for (int64_t i = 0; i < filters + 2; ++i) steps.push_back(static_cast<double>(i));
  for (int64_t i = 0; i < bins; ++i) rows.push_back(static_cast<double>(i));
  V mels = V{n, f64_constant(n, {filters + 2}, steps)} *
               ((mel(high) - mel(low)) / static_cast<double>(filters + 2)) +
           mel(low);
  V hertz = (apply("exp", mels * (std::log(10.0) / 2595)) - 1) * 700;
  V corners = apply("floor", hertz * static_cast<double>(length + 1) / rate);
  auto corner = [&](int64_t k) { return V{n, n.slice(corners.id, 0, k, k + filters)}; };
  V left = corner(0), centre = corner(1), right = corner(2),
    bin{n, f64_constant(n, {bins, 1}, rows)}, zero = bin.number(0);
  V flat = apply("equal", left, centre), at_centre = apply("equal", bin, centre);
  V rising = (bin - left) / where(flat, bin.number(1), centre - left);
  V up = where(apply("less", bin, left), zero,
               where(apply("greater", bin, centre), zero,
                     where(flat, at_centre.to(DType::kFloat64), rising)));
  V wide = apply("greater", right, centre);
  V falling = (right - bin) / where(wide, right - centre, bin.number(1));
  V on_fall = apply("and", apply("greater_equal", bin, centre), apply("less", bin, right));
  n.out(0, where(on_fall, falling, up).to(output_type(n)).id);
}

struct Transform {
  int64_t length;               // of the transform
  int64_t in, out;              // extents of the axis before and after
  int64_t in_parts, out_parts;  // 1: real, 2: real and imaginary
  bool inverse, onesided;
};
// The extents of the matrix: a longer signal is cut to the length, a shorter one has zeros behind
// it, which need no rows.
Transform make_transform(NodeImport& n, int64_t length, int64_t extent, int64_t parts, bool inverse,
                         bool onesided) {
  if (length < 1) n.fail("transform of length " + std::to_string(length));
  if (parts != 1 && parts != 2)
    n.fail("last dimension is " + std::to_string(parts) + ", expected 1 or 2");
  Transform t{length, std::min(extent, length), length, parts, 2, inverse, onesided};
  if (onesided && !inverse) t.out = length / 2 + 1;
  if (onesided && inverse) {
    t.in = std::min(extent, length / 2 + 1);
    t.out_parts = 1;
  }
  if (t.in * t.in_parts * t.out * t.out_parts > kMostMatrixElements)
    n.unsupported("a Fourier transform of length " + std::to_string(length));
  return t;
}
// Coefficient of part q of input j in part p of output k. The half that a one-sided inverse does
// not see mirrors the other.
double coefficient(const Transform& t, int64_t j, int64_t q, int64_t k, int64_t p) {
  const double angle = (t.inverse ? 2 : -2) * M_PI * static_cast<double>((j * k) % t.length) /
                       static_cast<double>(t.length);
  double c = p == 0 ? (q == 0 ? std::cos(angle) : -std::sin(angle))
                    : (q == 0 ? std::sin(angle) : std::cos(angle));
  if (!t.inverse) return c;
  if (t.onesided) {
    const bool mirrored = j > 0 && 2 * j != t.length;
    if (mirrored)
      c *= 2;
    else if (q == 1)
      c = 0;  // these are real
  }
  return c / static_cast<double>(t.length);
}
// [in * in_parts, out * out_parts]
// Computed in f64 and rounded once, so that its error does not add to that of the sums.
ValueId transform_matrix(NodeImport& n, const Transform& t, DType dtype) {
  std::vector<double> m;
  m.reserve(static_cast<size_t>(t.in * t.in_parts * t.out * t.out_parts));
  for (int64_t j = 0; j < t.in; ++j)
    for (int64_t q = 0; q < t.in_parts; ++q)
      for (int64_t k = 0; k < t.out; ++k)
        for (int64_t p = 0; p < t.out_parts; ++p) m.push_back(coefficient(t, j, q, k, p));
  return n.cast(f64_constant(n, {t.in * t.in_parts, t.out * t.out_parts}, m), dtype);
}

// The last dimension holds the parts of complex numbers.
void dft(NodeImport& n) {
  ValueId x = n.required(0);
  const int rank = n.rank(x);
  if (rank < 2) n.fail("x is " + to_string(n.type(x)) + ", expected [..., signal, ..., parts]");
  int64_t axis =
      n.opset() >= 20 ? (n.has(2) ? known_scalar(n, 2, "axis") : -2) : n.int_attr("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank - 1)
    n.fail("axis " + std::to_string(axis) + " of " + to_string(n.type(x)));
  auto extent = ir::as_int(n.dim(x, static_cast<int>(axis))),
       parts = ir::as_int(n.dim(x, rank - 1));
  if (!extent || !parts) n.needs_value("the extent of the signal is not known at compile time");
  const bool inverse = n.int_attr("inverse", 0) != 0, onesided = n.int_attr("onesided", 0) != 0;
  const int64_t natural = inverse && onesided ? 2 * (*extent - 1) : *extent;
  const int64_t length = n.has(1) ? known_scalar(n, 1, "dft_length") : natural;
  const Transform t = make_transform(n, length, *extent, *parts, inverse, onesided);
  if (t.in < *extent) x = n.slice(x, static_cast<int>(axis), 0, t.in);
  // The axis next to the parts, and both as one.
  std::vector<int64_t> perm, back(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank - 1; ++d)
    if (d != axis) perm.push_back(d);
  perm.push_back(axis);
  perm.push_back(rank - 1);
  for (size_t d = 0; d < perm.size(); ++d)
    back[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  const bool moved = axis != rank - 2;
  if (moved) x = n.transpose(x, perm);
  std::vector<Expr> flat(n.type(x).dims.begin(), n.type(x).dims.end() - 2), result = flat;
  flat.push_back(Expr(t.in * t.in_parts));
  result.push_back(Expr(t.out));
  result.push_back(Expr(t.out_parts));
  ValueId y = n.op("matmul", {n.reshape(x, flat), transform_matrix(n, t, n.dtype(x))});
  y = n.reshape(y, result);
  n.out(0, moved ? n.transpose(y, back) : y);
}

// x: [b, samples, parts]; frames of `length` samples, `step` apart. y: [b, frames, bins, 2].
void stft(NodeImport& n) {
  ValueId x = n.required(0);
  if (n.rank(x) == 2) x = n.reshape(x, std::vector<Expr>{n.dim(x, 0), n.dim(x, 1), 1});
  if (n.rank(x) != 3)
    n.fail("signal is " + to_string(n.type(x)) + ", expected [batch, samples, parts]");
  const int64_t step = known_scalar(n, 1, "frame_step");
  if (step < 1) n.fail("frame_step " + std::to_string(step));
  std::optional<int64_t> length;
  if (n.has(3))
    length = known_scalar(n, 3, "frame_length");
  else
    length = ir::as_int(n.has(2) ? n.dim(n.in(2), 0) : n.dim(x, 1));
  auto parts = ir::as_int(n.dim(x, 2));
  if (!length || !parts) n.needs_value("the length of a frame is not known at compile time");
  const Transform t =
      make_transform(n, *length, *length, *parts, false, n.int_attr("onesided", 1) != 0);
  // As kernels of a convolution over samples, one per output part: [bins * 2, parts, length].
  V kernel{n, n.transpose(n.reshape(transform_matrix(n, t, n.dtype(x)),
                                    std::vector<int64_t>{t.in, t.in_parts, t.out * 2}),
                          {2, 1, 0})};
  if (n.has(2)) kernel = kernel * V{n, n.in(2)}.to(kernel.dtype());
  ValueId y = n.op("conv", {n.transpose(x, {0, 2, 1}), kernel.id},
                   {{"strides", std::vector<int64_t>{step}}});
  y = n.transpose(y, {0, 2, 1});
  n.out(0, n.reshape(y, std::vector<Expr>{n.dim(y, 0), n.dim(y, 1), Expr(t.out), 2}));
}

constexpr auto kSignalRows = std::to_array<OpMapping>({
    {"", "HannWindow", 17, hann_window},
    {"", "HammingWindow", 17, hamming_window},
    {"", "BlackmanWindow", 17, blackman_window},
    {"", "MelWeightMatrix", 17, mel_weight_matrix},
    {"", "DFT", 17, dft, Form::kFormula},
    {"", "STFT", 17, stft, Form::kFormula},
});

}  // namespace

std::span<const OpMapping> signal_mappings() { return kSignalRows; }

}  // namespace tilewright::onnx
