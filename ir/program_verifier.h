// The rules of programs (verify_program.h): structure in verify_program.cpp, what depends on the
// order of instructions in verify_program_order.cpp, layouts in verify_program_layouts.cpp.
#pragma once

#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/program/buffer_uses.h"
#include "runtime/core/result.h"

namespace tilewright::ir {

// "row-major", or the layout as text.
std::string layout_text(const Layout& layout);

// A forward dataflow analysis over blocks: the State before each instruction, merged by
// intersection where branches meet.
class ProgramVerifier {
 public:
  // Borrows the program.
  explicit ProgramVerifier(const Program& program) : p_(program), uses_(program) {}
  // Once for each verifier.
  Status run();

 private:
  // What is known to hold before an instruction.
  struct State {
    std::set<int32_t> stored, allocated;  // of buffers with storage of their own
    std::set<const ExprNode*> symbols;
    bool fails = false;  // never gets here
  };

  void report(std::string text);
  std::string who(int32_t b) const;
  const ProgramBuffer& at(int32_t b) const { return p_.buffers[static_cast<size_t>(b)]; }
  bool is_buffer(int32_t b, const char* what);
  void size(const Expr& e, const std::string& what);
  void stand_at(size_t block, size_t instruction) {
    place_ =
        " (block " + std::to_string(block) + ", instruction " + std::to_string(instruction) + ")";
  }
  void buffer(int32_t number);
  void offset(int32_t number);
  void signature();
  // verify_program_layouts.cpp: buffers that share memory, and those between which bytes are copied.
  void view_layout(int32_t number);
  void same_layout(int32_t a, int32_t b);
  void row_major(int32_t b, const char* what);
  void layouts(const ProgramInstruction& x);
  void call(const CallInstruction& x);
  bool structure();

  void order();
  void walk(size_t block, State& state);
  void branch(const IfInstruction& x, State& state);
  void loop(const LoopInstruction& x, State& state);
  void reads(int32_t b, const State& state);
  void stores(int32_t b, State& state);
  void known(const Expr& e, const State& state, const std::string& what);
  void sizes_known(int32_t b, const State& state);
  void lifetimes();
  // verify_program_starts.cpp
  void starts();
  bool start_in_bounds(const StartInstruction& x);
  void unused_behind(const StartInstruction& x, size_t instruction);
  void lives_at(const ProgramInstruction& x, int32_t main_instruction);

  const Program& p_;
  BufferUses uses_;
  std::string place_;
  std::vector<std::string> violations_;
  size_t found_ = 0;
  std::unordered_set<const ExprNode*> symbols_;
};

}  // namespace tilewright::ir
