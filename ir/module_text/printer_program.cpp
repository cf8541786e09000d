#include "ir/module_text/printer_program.h"

#include <algorithm>

#include "ir/module_text/program_words.h"
#include "ir/text/lexer.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {

namespace {

class ProgramPrinter {
 public:
  ProgramPrinter(const Program& program, std::vector<ConstantRef>& constants)
      : p_(program), constants_(constants) {}

  std::string run() {
    out_ = "program " + name_to_text(p_.name) + " " + std::string(name(p_.numerics));
    if (!p_.symbols.empty()) out_ += " symbols" + exprs({p_.symbols.begin(), p_.symbols.end()});
    out_ += " {\n";
    for (size_t b = 0; b < p_.buffers.size(); ++b) buffer(b);
    out_ += "  inputs" + buffers(p_.inputs) + "\n  outputs" + buffers(p_.outputs) + "\n";
    for (size_t k = 0; k < p_.kernels.size(); ++k) {
      out_ += to_text(p_.kernels[k]);
      if (k < p_.schedules.size()) schedule(p_.schedules[k]);
    }
    for (const ProfileEntry& e : p_.profile) profile(e);
    for (const auto& block : p_.blocks) {
      out_ += "  block {\n";
      for (const ProgramInstruction& i : block)
        std::visit(
            [&](const auto& x) {
              out_ += "    " + std::string(word_of(Of<std::decay_t<decltype(x)>>()));
              print(x);
              out_ += "\n";
            },
            i);
      out_ += "  }\n";
    }
    return std::move(out_) + "}\n";
  }

 private:
  static std::string id(int32_t buffer) { return "b" + std::to_string(buffer); }
  static std::string string(const std::string& s) { return quoted(s, '"'); }
  std::string expr(const Expr& e) { return to_text(e, names_); }
  std::string exprs(const std::vector<Expr>& all, const char* brackets = "()") {
    std::string text(1, brackets[0]);
    for (const Expr& e : all) text += (&e == &all[0] ? "" : ", ") + expr(e);
    return text + brackets[1];
  }
  static std::string buffers(const std::vector<int32_t>& all) {
    std::string text = "(";
    for (size_t i = 0; i < all.size(); ++i) text += (i ? ", " : "") + id(all[i]);
    return text + ")";
  }

  void buffer(size_t number) {
    const ProgramBuffer& b = p_.buffers[number];
    out_ += "  " + std::string(word_of(b.kind)) + " " + id(static_cast<int32_t>(number)) + " " +
            string(b.name) + ": " + std::string(name(b.type.dtype)) + exprs(b.type.dims, "[]");
    if (!b.layout.empty()) out_ += " " + to_text(b.layout);
    out_ += " elements " + expr(b.elements);
    if (b.alias_of >= 0) out_ += " of " + id(b.alias_of);
    if (b.alias_offset != 0) out_ += " at " + std::to_string(b.alias_offset);
    view(b.view);
    if (b.dynamic) out_ += " dynamic";
    if (b.updated) out_ += " updated";
    out_ += " live " + std::to_string(b.first_use) + ".." + std::to_string(b.last_use);
    if (b.constant) out_ += " = #" + std::to_string(constant(b.constant));
    out_ += "\n";
  }
  void view(const ViewMap& v) {
    switch (v.kind) {
      case ViewMap::Kind::kSame: return;
      case ViewMap::Kind::kReshaped: out_ += " reshaped"; return;
      case ViewMap::Kind::kTransposed: out_ += " transposed ("; break;
      case ViewMap::Kind::kPart: out_ += " by ("; break;
    }
    for (size_t d = 0; d < v.dims.size(); ++d) {
      if (d) out_ += ", ";
      if (d < v.steps.size()) out_ += std::to_string(v.steps[d]) + " of ";
      out_ += std::to_string(v.dims[d]);
    }
    out_ += ")";
  }
  size_t constant(const ConstantRef& c) {
    const auto at = std::find(constants_.begin(), constants_.end(), c);
    if (at != constants_.end()) return static_cast<size_t>(at - constants_.begin());
    constants_.push_back(c);
    return constants_.size() - 1;
  }
  // A string for each line.
  void schedule(const std::string& lines) {
    if (lines.empty()) return;
    out_ += "  schedule\n";
    for (size_t at = 0; at < lines.size();) {
      const size_t end = std::min(lines.find('\n', at), lines.size() - 1) + 1;
      out_ += "    " + string(lines.substr(at, end - at)) + "\n";
      at = end;
    }
  }
  void profile(const ProfileEntry& e) {
    out_ += "  profile " + string(e.kernel);
    for (const std::string& n : e.nodes) out_ += (&n == &e.nodes[0] ? " from " : ", ") + string(n);
    out_ += " flops " + expr(e.flops) + " bytes " + expr(e.bytes) + "\n";
  }

  // Instructions, behind their word; the text is in printer_program.h.
  void print(const CallInstruction& x) {
    out_ += " " + std::to_string(x.kernel) + buffers(x.buffers);
    if (!x.scalars.empty()) out_ += " scalars" + exprs(x.scalars);
    if (x.profile >= 0) out_ += " profile " + std::to_string(x.profile);
  }
  void print(const DefineSymbolInstruction& x) {
    out_ += " " + expr(x.symbol) + " = " + id(x.buffer) + "[" + std::to_string(x.index) +
            "] limit " + std::to_string(x.limit);
    if (!x.what.empty()) out_ += " " + string(x.what);
  }
  void print(const AllocateInstruction& x) { out_ += " " + id(x.buffer); }
  void print(const CopyInstruction& x) { out_ += " " + id(x.to) + " = " + id(x.from); }
  void print(const IfInstruction& x) {
    out_ += " " + id(x.condition) + " then " + std::to_string(x.then_block) + " else " +
            std::to_string(x.else_block);
  }
  void print(const FailInstruction& x) { out_ += " " + string(x.message); }
  void print(const CheckIndicesInstruction& x) {
    out_ += " " + id(x.indices) + " farthest " + id(x.farthest) + " extents" + exprs(x.extents) +
            " dim " + std::to_string(x.dim) + " " + string(x.node);
  }
  void print(const RequireInstruction& x) {
    out_ += " " + std::string(name(x.relation)) + exprs({x.a, x.b}) + " " + string(x.what);
  }
  void print(const StartInstruction& x) {
    out_ += " " + std::to_string(x.number) + " " + id(x.buffer) + " from " +
            std::to_string(x.begin) + " to " + std::to_string(x.end);
  }
  void print(const LoopInstruction& x) {
    auto named = [&](const char* word, int32_t b) {
      if (b >= 0) out_ += std::string(" ") + word + " " + id(b);
    };
    named("trips", x.trip_count);
    named("while", x.initial_condition);
    named("iteration", x.iteration);
    out_ += " body " + std::to_string(x.body);
    named("until", x.body_condition);
    auto pairs = [&](const char* word, const auto& all, bool result_first) {
      if (all.empty()) return;
      out_ += std::string(" ") + word + "(";
      for (const auto& [a, b] : all)
        out_ += (&a == &all[0].first ? "" : ", ") + id(result_first ? a : b) + " = " +
                id(result_first ? b : a);
      out_ += ")";
    };
    pairs("carried", x.carried, true);
    pairs("scans", x.scans, false);
    if (x.count) out_ += " count " + expr(x.count);
  }

  const Program& p_;
  std::vector<ConstantRef>& constants_;
  NameTable names_;
  std::string out_;
};

}  // namespace

std::string to_text(const Program& program, std::vector<ConstantRef>* constants) {
  std::vector<ConstantRef> own;
  return ProgramPrinter(program, constants ? *constants : own).run();
}

}  // namespace tilewright::ir
