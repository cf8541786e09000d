#include "tests/fuzz/model_changes.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "frontends/onnx/signatures.h"
#include "frontends/tensor_files/tensor_elements.h"

namespace tilewright {
namespace {

using onnx_format::AttributeProto;
using onnx_format::ModelProto;
using onnx_format::NodeProto;
using onnx_format::TensorProto;
using onnx_format::TensorShapeProto;
using onnx_format::ValueInfoProto;

constexpr int kLastElementType = 26, kLastOpset = 26;
constexpr int64_t kNumbers[] = {0,         1,         -1,        2,         -2,
                                64,        INT32_MAX, INT32_MIN, 1LL << 31, 1LL << 32,
                                1LL << 62, INT64_MAX, INT64_MIN};
constexpr float kFloats[] = {0, -1, 1e30f, -1e30f, INFINITY, NAN};

// Extents near one, and those that are special.
std::vector<int64_t> other_extents(int64_t d) {
  std::vector<int64_t> all;
  for (const int64_t e : {d - 1, d + 1, int64_t{1}, int64_t{0}})
    if (e >= 0 && e != d && std::find(all.begin(), all.end(), e) == all.end()) all.push_back(e);
  return all;
}

// Lists the changes of one model; the model is borrowed, the changes hold indices into it.
class Changes {
 public:
  explicit Changes(const ModelProto& model) : model_(model) {}

  std::vector<ModelChange> all() {
    const auto& graph = model_.graph();
    for (int i = 0; i < graph.input_size(); ++i) of_input(i, graph.input(i));
    for (int i = 0; i < graph.initializer_size(); ++i) of_constant(i, graph.initializer(i));
    for (int i = 0; i < graph.node_size(); ++i) of_operands(i, graph.node(i));
    for (int i = 0; i < graph.node_size(); ++i) of_attributes(i, graph.node(i));
    for (int v = 1; v <= kLastOpset; ++v)
      add("opset " + std::to_string(v), [v](ModelProto& m) {
        for (auto& o : *m.mutable_opset_import())
          if (o.domain().empty() || o.domain() == "ai.onnx") o.set_version(v);
      });
    return std::move(all_);
  }

 private:
  void add(std::string what, std::function<void(ModelProto&)> apply) {
    all_.push_back({std::move(what), std::move(apply)});
  }

  // Changes the declaration of input i: runs are given what it declares.
  void of_input(int i, const ValueInfoProto& input) {
    if (!input.type().has_tensor_type()) return;
    const std::string who = "input '" + input.name() + "': ";
    const auto tensor = [i](ModelProto& m) {
      return m.mutable_graph()->mutable_input(i)->mutable_type()->mutable_tensor_type();
    };
    for (int t = 1; t <= kLastElementType; ++t)
      add(who + "type " + std::to_string(t), [=](ModelProto& m) { tensor(m)->set_elem_type(t); });
    const auto of_shape = [&](const std::string& what, auto change) {
      add(who + what, [=](ModelProto& m) { change(*tensor(m)->mutable_shape()); });
    };
    const TensorShapeProto& shape = input.type().tensor_type().shape();
    of_shape("rank 0", [](TensorShapeProto& s) { s.clear_dim(); });
    of_shape("rank 66", [](TensorShapeProto& s) {
      while (s.dim_size() < 66) s.add_dim()->set_dim_value(1);
    });
    of_shape("one dimension more", [](TensorShapeProto& s) { s.add_dim()->set_dim_value(2); });
    of_shape("all symbolic", [](TensorShapeProto& s) {
      for (int d = 0; d < s.dim_size(); ++d)
        s.mutable_dim(d)->set_dim_param("s" + std::to_string(d));
    });
    for (int d = 0; d < shape.dim_size(); ++d) {
      const std::string which = "dimension " + std::to_string(d);
      of_shape(which + " is gone",
               [d](TensorShapeProto& s) { s.mutable_dim()->DeleteSubrange(d, 1); });
      of_shape(which + " is symbolic",
               [d](TensorShapeProto& s) { s.mutable_dim(d)->set_dim_param("n"); });
      for (const int64_t e : other_extents(shape.dim(d).dim_value()))
        of_shape(which + " is " + std::to_string(e),
                 [=](TensorShapeProto& s) { s.mutable_dim(d)->set_dim_value(e); });
    }
  }

  // Elements are cut off or repeated to as many as the type and shape have.
  void of_constant(int i, const TensorProto& constant) {
    const auto decoded = decode_host_tensor(constant);
    if (!decoded.ok()) return;
    const HostTensor& t = *decoded;
    const std::string who = "constant '" + constant.name() + "': ";
    const auto replace = [&, i](const std::string& what, HostTensor other) {
      for (size_t k = 0; k < other.bytes.size() && !t.bytes.empty(); ++k)
        other.bytes[k] = t.bytes[k % t.bytes.size()];
      add_constant(who + what, i, std::move(other));
    };
    for (int code = 1; code <= kLastElementType; ++code)
      if (const auto type = dtype_from_onnx(code); type && *type != t.dtype)
        replace("type " + std::to_string(code), HostTensor(*type, t.shape));
    replace("rank 0", HostTensor(t.dtype, {}));
    Shape longer = t.shape;
    longer.push_back(2);
    replace("one dimension more", HostTensor(t.dtype, longer));
    longer.resize(66, 1);
    replace("rank 66", HostTensor(t.dtype, longer));
    for (size_t d = 0; d < t.shape.size(); ++d) {
      const std::string which = "dimension " + std::to_string(d);
      Shape less = t.shape;
      less.erase(less.begin() + static_cast<long>(d));
      replace(which + " is gone", HostTensor(t.dtype, less));
      for (const int64_t e : other_extents(t.shape[d])) {
        Shape other = t.shape;
        other[d] = e;
        replace(which + " is " + std::to_string(e), HostTensor(t.dtype, other));
      }
    }
    if (t.dtype == DType::kInt64 || t.dtype == DType::kInt32)
      for (const int64_t n : kNumbers)
        for (const int64_t at : {int64_t{0}, t.size() - 1}) {
          if (t.size() == 0) continue;
          HostTensor other = t;
          const auto width = static_cast<size_t>(byte_size(t.dtype));
          std::memcpy(other.bytes.data() + static_cast<size_t>(at) * width, &n, width);
          add_constant(who + "element " + std::to_string(at) + " is " + std::to_string(n), i,
                       std::move(other));
        }
  }
  // Puts a tensor in the place of initializer i, under its name.
  void add_constant(std::string what, int i, HostTensor t) {
    add(std::move(what), [i, t = std::move(t)](ModelProto& m) {
      TensorProto* to = m.mutable_graph()->mutable_initializer(i);
      const std::string name = to->name();
      to->Clear();
      encode_host_tensor(t, *to);
      to->set_name(name);
    });
  }

  // A change of node i of the main graph.
  void add_node(int i, const std::string& what, std::function<void(NodeProto&)> change) {
    add(model_.graph().node(i).op_type() + what,
        [=](ModelProto& m) { change(*m.mutable_graph()->mutable_node(i)); });
  }
  // Removes an operand or result of node i, or adds one.
  void of_operands(int i, const NodeProto& node) {
    for (int k = 0; k < node.input_size(); ++k)
      add_node(i, " lacks operand " + std::to_string(k), [k](NodeProto& n) { n.set_input(k, ""); });
    if (node.input_size() > 0) {
      add_node(i, " has an operand less", [](NodeProto& n) { n.mutable_input()->RemoveLast(); });
      add_node(i, " has an operand more",
               [](NodeProto& n) { n.add_input(std::string(n.input(0))); });
    }
    if (node.output_size() > 1)
      add_node(i, " has a result less", [](NodeProto& n) { n.mutable_output()->RemoveLast(); });
    add_node(i, " has a result more", [](NodeProto& n) { n.add_output("one_more"); });
  }

  // Of each attribute that the signature has, whether the node has it or not.
  void of_attributes(int i, const NodeProto& node) {
    OnnxNode known;
    known.op_type = node.op_type();
    known.domain = node.domain() == "ai.onnx" ? "" : node.domain();
    for (const auto& o : model_.opset_import())
      if ((o.domain() == "ai.onnx" ? "" : o.domain()) == known.domain) known.opset = o.version();
    const onnx::Signature* s = onnx::find_signature(known);
    if (!s) return;
    std::string_view left = s->attributes;
    while (!left.empty()) {
      const std::string_view one = left.substr(0, left.find(' '));
      left.remove_prefix(std::min(left.size(), one.size() + 1));
      const size_t colon = one.find(':');
      if (colon != one.npos) of_attribute(i, std::string(one.substr(0, colon)), one[colon + 1]);
    }
  }
  // Sets an attribute of node i, which is added where the node leaves it out.
  void of_attribute(int i, const std::string& name, char kind) {
    const auto set = [&](const std::string& what, auto change) {
      add_node(i, "'s " + name + " " + what, [=](NodeProto& n) {
        AttributeProto* a = nullptr;
        for (AttributeProto& other : *n.mutable_attribute())
          if (other.name() == name) a = &other;
        if (!a) (a = n.add_attribute())->set_name(name);
        change(*a);
      });
    };
    const auto set_number = [&](int64_t v) {
      set("= " + std::to_string(v), [=](AttributeProto& a) {
        a.set_type(onnx_format::INT);
        a.set_i(v);
      });
    };
    const auto set_float = [&](float v) {
      set("= " + std::to_string(v), [=](AttributeProto& a) {
        a.set_type(onnx_format::FLOAT);
        a.set_f(v);
      });
    };
    const auto set_text = [&](const std::string& v) {
      set("= '" + v + "'", [=](AttributeProto& a) {
        a.set_type(onnx_format::STRING);
        a.set_s(v);
      });
    };
    // A value of another kind comes first, then values of its own kind that no operator takes or that are at an end
    // of its range.
    if (kind != 'i') set_number(1);
    if (kind != 'f') set_float(0.5f);
    if (kind != 's') set_text("X");
    if (kind == 'i')
      for (const int64_t v : kNumbers) set_number(v);
    if (kind == 'f')
      for (const float v : kFloats) set_float(v);
    if (kind == 's')
      for (const char* v : {"", "X", "\xff"}) set_text(v);
    if (kind == 'I') {
      const auto list = [&](const std::string& what, auto change) {
        set(what, [=](AttributeProto& a) {
          a.set_type(onnx_format::INTS);
          change(*a.mutable_ints());
        });
      };
      list("is empty", [](auto& l) { l.Clear(); });
      list("has one more", [](auto& l) { l.Add(1); });
      list("has one less", [](auto& l) {
        if (!l.empty()) l.RemoveLast();
      });
      list("has its first twice", [](auto& l) { l.Add(l.empty() ? 0 : l.Get(0)); });
      list("has 64 more", [](auto& l) {
        for (int k = 0; k < 64; ++k) l.Add(l.empty() ? 0 : l.Get(0));
      });
      for (const int64_t v : kNumbers) {
        list("begins with " + std::to_string(v),
             [v](auto& l) { l.empty() ? l.Add(v) : l.Set(0, v); });
        list("ends with " + std::to_string(v),
             [v](auto& l) { l.empty() ? l.Add(v) : l.Set(l.size() - 1, v); });
      }
    }
  }

  const ModelProto& model_;
  std::vector<ModelChange> all_;
};

}  // namespace

std::vector<ModelChange> single_changes(const ModelProto& model) { return Changes(model).all(); }

}  // namespace tilewright
