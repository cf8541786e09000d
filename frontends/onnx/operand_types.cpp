#include "frontends/onnx/operand_types.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <vector>

#include "frontends/onnx/split_text.h"

namespace tilewright::onnx {

namespace {

constexpr size_t kSequence = kDTypes.size();  // the bit behind those of the element types
using TypeSet = std::bitset<kSequence + 1>;

struct Group {
  std::string_view name, members;
};
constexpr Group kGroups[] = {{"floats", "f16+bf16+f32+f64"},
                             {"ints", "i8+i16+i32+i64"},
                             {"uints", "u8+u16+u32+u64"},
                             {"num", "floats+ints+uints"},
                             {"all", "num+bool"}};

// "floats+i32-f64"; nothing where the word is no set.
std::optional<TypeSet> set_of(std::string_view word) {
  TypeSet set;
  for (size_t at = 0; at < word.size();) {
    const size_t end = std::min(word.find_first_of("+-", at + 1), word.size());
    const bool less = word[at] == '-';
    const std::string_view name = word.substr(at + (less || word[at] == '+' ? 1 : 0),
                                              end - at - (less || word[at] == '+' ? 1 : 0));
    TypeSet part;
    if (name == "seq") part.set(kSequence);
    for (const DTypeInfo& t : kDTypes)
      if (t.name == name) part.set(static_cast<size_t>(t.dtype));
    for (const Group& g : kGroups)
      if (g.name == name) part = *set_of(g.members);
    if (part.none() && name != "none") return std::nullopt;
    set = less ? set & ~part : set | part;
    at = end;
  }
  return set;
}

struct Formal {
  std::string_view name, type;  // type: its name, or a set
  TypeSet set;
  bool optional = false, many = false, mixed = false;
};

std::vector<Formal> formals_of(const Signature& signature) {
  std::map<std::string_view, TypeSet> named;
  for (const std::string_view word : words(signature.types)) {
    const size_t equals = word.find('=');
    named[word.substr(0, equals)] = set_of(word.substr(equals + 1)).value();
  }
  std::vector<Formal> formals;
  for (std::string_view word : words(signature.operands)) {
    Formal& f = formals.emplace_back();
    const size_t stars = word.size() - std::min(word.find_last_not_of('*') + 1, word.size());
    f.many = stars > 0, f.mixed = stars > 1, f.optional = word.ends_with('?');
    word.remove_suffix(f.optional ? 1 : stars);
    const size_t colon = word.find(':');
    f.name = word.substr(0, colon), f.type = word.substr(colon + 1);
    const auto set = named.find(f.type);
    f.set = set != named.end() ? set->second : set_of(f.type).value();
  }
  return formals;
}

// Signatures are constants, so that each is read once.
const std::vector<Formal>& formals(const Signature& signature) {
  thread_local std::map<const Signature*, std::vector<Formal>> read;
  const auto [it, fresh] = read.try_emplace(&signature);
  if (fresh) it->second = formals_of(signature);
  return it->second;
}

const Formal& formal_of(const std::vector<Formal>& all, int i) {
  return all[std::min(static_cast<size_t>(i), all.size() - 1)];
}

// "f16, f32 or f64"
std::string listed(const TypeSet& set) {
  std::vector<std::string> names;
  for (const DTypeInfo& t : kDTypes)
    if (set[static_cast<size_t>(t.dtype)]) names.emplace_back(t.name);
  if (set[kSequence]) names.emplace_back("a sequence");
  if (names.empty()) return "a type that is unsupported";
  std::string text = names[0];
  for (size_t k = 1; k < names.size(); ++k)
    text += (k + 1 < names.size() ? ", " : " or ") + names[k];
  return text;
}

}  // namespace

std::string operand_name(const Signature& signature, int i) {
  const std::vector<Formal>& all = formals(signature);
  if (all.empty()) return "operand " + std::to_string(i);
  const Formal& formal = formal_of(all, i);
  return "operand " + (formal.many ? std::to_string(i) : "'" + std::string(formal.name) + "'");
}

void check_operand_types(NodeImport& n, const Signature& signature) {
  const std::vector<Formal>& all = formals(signature);
  std::map<std::string_view, int> firsts;  // by named type, the operand that has it
  for (int i = 0; i < n.num_inputs() && !all.empty(); ++i) {
    const Formal& formal = formal_of(all, i);
    const std::string name = operand_name(signature, i);
    if (!n.has(i)) {
      // A node may list absent operands beyond those that its operator takes.
      const bool is_surplus = i >= static_cast<int>(all.size());
      if (formal.many || (!is_surplus && !formal.optional)) n.fail(name + " is missing");
      continue;
    }
    if (n.is_sequence(i)) {
      if (!formal.set[kSequence]) n.fail(name + " is a sequence, expected " + listed(formal.set));
      continue;
    }
    const ir::TensorType& type = n.type(n.stored(i));
    if (!formal.set[static_cast<size_t>(type.dtype)])
      n.fail(name + " is " + to_string(type) + ", expected " + listed(formal.set));
    if (formal.mixed) continue;
    const int first = firsts.try_emplace(formal.type, i).first->second;
    const ir::TensorType& other = n.type(n.stored(first));
    if (other.dtype != type.dtype &&
        signature.types.find(std::string(formal.type) + "=") != std::string_view::npos)
      n.fail(operand_name(signature, first) + " is " + to_string(other) + " and " + name + " is " +
             to_string(type) + ", expected one type");
  }
}

}  // namespace tilewright::onnx
