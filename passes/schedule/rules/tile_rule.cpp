// A tile of accumulators in registers: rows by vectors of results, the reduction inside, the
// epilogue on the tile.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/matrix_tile.h"
#include "passes/schedule/rules/rule.h"
#include "passes/schedule/rules/tile_choice.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class TileRule {
 public:
  TileRule(ScheduleState& s, std::string block, std::string epilogue)
      : s_(s), m_(std::move(block)), e_(std::move(epilogue)) {}

  bool run() {
    const BlockPlace place = s_.place(m_);
    block_ = *place.block;
    for (size_t i = 0; i < block_.axes.size(); ++i)
      if (loop_of_axis(block_, i).empty()) return false;
    if (place.loops.size() < block_.axes.size()) return false;
    outer_loops_ = place.loops.size() - block_.axes.size();
    const auto mark = s_.mark();
    if (build()) return true;
    s_.restore(mark);
    return false;
  }

 private:
  bool build() {
    if (e_.empty()) {
      e_ = m_ + "_out";
      if (!s_.apply("cache_write", {m_, m_ + "_acc", e_})) return false;
    }
    if (!find_axes()) return false;
    choose();
    pack_operands();
    if (!order_loops(m_, block_, true)) return false;
    const BlockPlace e = s_.place(e_);
    const Block epilogue = *e.block;
    if (epilogue.axes.size() != parallel_.size()) return false;
    if (!order_loops(e_, epilogue, false)) return false;
    if (!s_.apply("compute_at", {e_, name(m_, hoisted_.empty() ? "io" : "jo")})) return false;
    if (!s_.apply("decompose_reduction",
                  {m_, reduce_loops_.empty() ? name(m_, "ii") : reduce_loops_[0]}))
      return false;
    if (matrix_ && !split_rows()) return false;
    annotate(m_);
    if (slides_) s_.apply("unroll", {reduce_loops_.back()});
    if (dot_ && !s_.apply("tensorize", {name(m_, "kq")})) return false;
    if (matrix_ && !s_.apply("tensorize", {name(m_, "ii")})) return false;
    annotate(e_);
    annotate_init();
    if (!stage_padding()) parallelize();
    return true;
  }

  static std::string name(const std::string& block, const char* part) { return block + "." + part; }

  // j: the results' innermost axis; i: the next one, joined with those it runs on from.
  bool find_axes() {
    const BlockPlace e = s_.place(e_);
    const auto accesses = block_accesses(*e.block);
    const BlockAccess& store = accesses.back();
    std::vector<std::pair<int64_t, size_t>> by_stride;
    for (size_t i = 0; i < block_.axes.size(); ++i) {
      if (block_.axes[i].kind == AxisKind::kReduce)
        reduce_.push_back(i);
      else if (block_.axes[i].kind == AxisKind::kParallel)
        parallel_.push_back(i);
      else
        return false;
    }
    if (e.block->axes.size() != parallel_.size()) return false;
    for (size_t n = 0; n < parallel_.size(); ++n) {
      if (loop_of_axis(*e.block, n).empty()) return false;
      if (!can_prove_equal(e.block->axes[n].extent, block_.axes[parallel_[n]].extent)) return false;
      if (is_one(e.block->axes[n].extent)) continue;
      by_stride.push_back({store.strides[n] ? as_int(store.strides[n]).value_or(int64_t{1} << 40)
                                            : int64_t{1} << 50,
                           n});
    }
    std::stable_sort(by_stride.begin(), by_stride.end());
    if (by_stride.empty()) return false;
    j_ = by_stride[0].second;
    for (size_t k = 1; k < by_stride.size(); ++k) rows_.push_back(by_stride[k].second);
    const auto of_block = block_accesses(block_);
    // First the rows that read the same columns: these are what a tile reads once.
    std::stable_partition(rows_.begin(), rows_.end(),
                          [&](size_t n) { return shares_columns(of_block, parallel_[n]); });
    // Rows that continue each other in every access count as one.
    size_t joined = rows_.empty() ? 0 : 1;
    Expr extent = rows_.empty() ? Expr(1) : block_.axes[parallel_[rows_[0]]].extent;
    // Joining pays when tiles fit the innermost of them; a row of its own with a tail is better
    // than tiles of one.
    const int64_t inner = rows_.empty() ? 1 : extent_or(extent, 1);
    bool fits = false;
    for (int64_t r = 4; r <= 14; ++r) fits |= inner % r == 0 || r % inner == 0;
    while (fits && joined < rows_.size() &&
           runs_on(of_block, parallel_[rows_[joined]], parallel_[rows_[0]], extent) &&
           runs_on(accesses, rows_[joined], rows_[0], extent)) {
      extent = simplify(extent * block_.axes[parallel_[rows_[joined]]].extent);
      ++joined;
    }
    outer_.assign(rows_.begin() + static_cast<long>(joined), rows_.end());
    rows_.resize(joined);
    row_extent_ = extent;
    return true;
  }
  // Does what moves with the columns stay when this axis moves?
  bool shares_columns(const std::vector<BlockAccess>& accesses, size_t axis) const {
    for (const BlockAccess& a : accesses) {
      if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
      const Expr& along = a.strides[parallel_[j_]];
      if (along && is_zero(along)) continue;
      if (!a.strides[axis] || !is_zero(a.strides[axis])) return false;
    }
    return true;
  }
  static bool runs_on(const std::vector<BlockAccess>& accesses, size_t outer, size_t inner,
                      const Expr& extent) {
    for (const BlockAccess& a : accesses) {
      if (!a.strides[outer] || !a.strides[inner]) return false;
      if (!can_prove_equal(a.strides[outer], a.strides[inner] * extent)) return false;
    }
    return true;
  }

  // The terms that one Dot takes of a sum of products of u8 and packed i8, or of i16 and packed i8
  // or i16, or of bf16, which lie side by side; 0 where it has not that form.
  int64_t terms_of_dot() {
    if (reduce_.empty()) return 0;
    const size_t inner = reduce_in_order().back();
    const auto extent = as_int(block_.axes[inner].extent);
    DType left = DType::kInt32, right = left;
    for (const BlockAccess& a : block_accesses(block_)) {
      if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
      if ((s_.is_constant(a.buffer) && a.buffer->layout.empty()) || is_packed_for(a, inner))
        right = a.buffer->dtype;
      else if (a.strides[inner] && is_one(a.strides[inner]) && a.strides[parallel_[j_]] &&
               is_zero(a.strides[parallel_[j_]]))
        left = a.buffer->dtype;
    }
    const int64_t terms = dot_terms(left);
    bool fits = right == dot_partner(left) || (right == DType::kInt8 && left == DType::kInt16);
    fits &= block_.body.as<Store>()->buffer->dtype == dot_sum(left);
    // Where there is no instruction, bf16 is widened and multiplied as f32.
    if (left == DType::kBFloat16) fits &= s_.machine().has("avx512bf16");
    if (!terms || !fits || !extent || *extent % terms != 0) return 0;
    left_ = left;
    depth_ = *extent;
    return terms;
  }

  // Do the terms of a column lie side by side in groups, and those of columns side by side?
  bool is_packed_for(const BlockAccess& a, size_t reduce) const {
    const Layout& layout = a.buffer->layout;
    if (layout.size() < 2) return false;
    const LayoutAxis &term = layout.back(), &column = layout[layout.size() - 2];
    auto moves = [&](const LayoutAxis& l, size_t axis) {
      return a.indices[static_cast<size_t>(l.dim)].same_as(block_.axes[axis].var);
    };
    return term.divisor == 1 && term.modulus == dot_terms(DType::kUInt8) && moves(term, reduce) &&
           column.divisor == 1 && moves(column, parallel_[j_]) &&
           column.modulus ==
               lanes_for(s_.machine(), byte_size(dot_sum(DType::kUInt8)),
                         extent_or(block_.axes[parallel_[j_]].extent, 2 * kUnknownExtent));
  }

  void choose() {
    dot_ = terms_of_dot();
    const DType t = block_.body.as<Store>()->buffer->dtype;
    const int64_t rows = extent_or(row_extent_, kUnknownExtent),
                  columns = extent_or(block_.axes[parallel_[j_]].extent, 2 * kUnknownExtent);
    lanes_ = lanes_for(s_.machine(), byte_size(t), columns);
    const int64_t inner =
        rows_.size() > 1 ? extent_or(block_.axes[parallel_[rows_[0]]].extent, 1) : 0;
    // An operand that moves with both rows and columns is read anew for each result: fewer
    // accumulators do.
    bool shared = false;
    for (const BlockAccess& a : block_accesses(block_)) {
      if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
      const Expr& sj = a.strides[parallel_[j_]];
      shared |= sj && is_zero(sj);
    }
    if (shared && dot_)
      matrix_ = choose_matrix_tile(s_.machine(), left_, rows, columns, depth_, row_spans());
    if (matrix_) {
      tile_.rows = matrix_->all_rows();
      tile_.vectors = matrix_->column_tiles;
      s_.note(m_ + ": " + explain(*matrix_, as_int(row_extent_)));
    } else if (shared) {
      const TileChoice choice =
          choose_tile(s_.machine(), rows, columns, lanes_, inner, outer_tiles());
      tile_ = choice.best;
      s_.note(m_ + ": " + explain(choice, lanes_, s_.machine().vector_registers));
    } else {
      const int64_t vectors = (columns + lanes_ - 1) / lanes_;
      slides_ = widens_again();
      tile_.vectors = slides_                                ? 1
                      : vectors % 2 != 0 && vectors % 3 == 0 ? 3
                                                             : std::min<int64_t>(2, vectors);
      const int64_t most = std::min<int64_t>(rows, s_.machine().vector_registers < 32 ? 4 : 8);
      for (int64_t r = 1; r <= most; ++r)
        if (inner ? inner % r == 0 : rows % r == 0 || r == 4) tile_.rows = r;
      s_.note(m_ + ": " + std::to_string(tile_.rows) + " rows x " + std::to_string(tile_.vectors) +
              " vectors of " + std::to_string(lanes_) +
              " lanes; no operand is shared by the results, so that more sums bring nothing");
    }
    if (dot_) s_.note(m_ + ": sums of " + std::to_string(dot_) + " products by one instruction");
    columns_first_ = goes_by_columns();
    if (columns_first_)
      s_.note(m_ + ": the weights are larger than the cache and the rows are not: a panel of " +
              "columns at a time, over all rows");
  }

  // Is a value that neighbouring rows read, too, narrower than the sums? It is widened once for all
  // then.
  bool widens_again() const {
    if (rows_.empty() || reduce_.empty()) return false;
    const size_t window = reduce_in_order().back(), row = parallel_[rows_[0]];
    const Buffer& sums = block_.body.as<Store>()->buffer;
    bool found = false;
    for (const BlockAccess& a : block_accesses(block_))
      found |= !a.write && a.buffer != sums && !s_.is_constant(a.buffer) &&
               byte_size(a.buffer->dtype) < byte_size(sums->dtype) && a.strides[row] &&
               a.strides[window] && can_prove_equal(a.strides[row], a.strides[window]);
    return found && extent_or(block_.axes[window].extent, kUnknownExtent) <= kMostWindow;
  }
  // Rows after which each of the joined axes but the last goes on.
  std::vector<int64_t> row_spans() const {
    std::vector<int64_t> spans;
    for (size_t k = 0; k + 1 < rows_.size(); ++k)
      spans.push_back((k ? spans.back() : 1) *
                      extent_or(block_.axes[parallel_[rows_[k]]].extent, 1));
    return spans;
  }
  // Tiles of one place that the axes around them make; 0 where these are no tasks.
  int64_t outer_tiles() const {
    if (outer_loops_ > 0 || instances(block_) < kParallelWork * 4) return 0;
    int64_t n = 1;
    for (size_t k : outer_) n *= extent_or(block_.axes[parallel_[k]].extent, kUnknownExtent);
    return n;
  }
  // Weights that no cache holds pass by once, a panel of columns after the other, when all rows fit
  // into the cache beside a panel.
  bool goes_by_columns() const {
    if (outer_.empty() || outer_loops_ > 0) return false;
    int64_t weights = 0, rest = 0;
    for (const BlockAccess& a : block_accesses(block_)) {
      if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
      int64_t bytes = byte_size(a.buffer->dtype);
      for (const Expr& e : a.buffer->shape)
        bytes = std::min<int64_t>(bytes * std::max<int64_t>(extent_or(e, int64_t{1} << 20), 1),
                                  int64_t{1} << 40);
      (s_.is_constant(a.buffer) ? weights : rest) += bytes;
    }
    const int64_t panels =
        extent_or(block_.axes[parallel_[j_]].extent, 1) / (tile_.vectors * lanes_);
    return weights > s_.machine().l2_bytes / 2 && rest < s_.machine().l2_bytes / 2 &&
           panels >= 2 * std::max(s_.machine().threads, 1);
  }

  // Constants that move with j are laid out in the order in which the tile reads them.
  void pack_operands() {
    for (const BlockAccess& a : block_accesses(block_)) {
      if (a.write || !s_.is_constant(a.buffer) || !a.buffer->layout.empty()) continue;
      size_t j_dim = a.indices.size();
      std::vector<int64_t> numbers, inner;
      bool plain = true;
      for (size_t d = 0; d < a.indices.size(); ++d)
        if (a.indices[d].same_as(block_.axes[parallel_[j_]].var))
          j_dim = j_dim == a.indices.size() ? d : j_dim;
        else
          plain &= !uses_var(a.indices[d], block_.axes[parallel_[j_]].var);
      if (!plain || j_dim == a.indices.size()) continue;
      const auto dim = static_cast<int64_t>(j_dim);
      const int64_t width = tile_.vectors * lanes_;
      std::vector<bool> used(a.indices.size());
      used[j_dim] = true;
      const size_t last = reduce_.empty() ? 0 : reduce_in_order().back();
      int64_t last_dim = -1;
      for (size_t r : reduce_in_order()) {
        for (size_t d = 0; d < a.indices.size(); ++d)
          if (!used[d] && runs_along(a.indices[d], block_.axes[r].var)) {
            inner.insert(inner.end(), {static_cast<int64_t>(d), dot_ && r == last ? dot_ : 1, 0});
            if (r == last) last_dim = static_cast<int64_t>(d);
            used[d] = true;
          }
      }
      for (size_t d = 0; d < a.indices.size(); ++d)
        if (!used[d]) numbers.insert(numbers.end(), {static_cast<int64_t>(d), 1, 0});
      numbers.insert(numbers.end(), {dim, width, 0});
      numbers.insert(numbers.end(), inner.begin(), inner.end());
      numbers.insert(numbers.end(), {dim, 1, width});
      if (dot_ && last_dim >= 0) numbers.insert(numbers.end(), {last_dim, 1, dot_});
      if (s_.apply("transform_layout", {a.buffer->name}, numbers))
        s_.note(m_ + ": the constant '" + a.buffer->name + "' is packed in the order of the tile");
    }
  }
  // Is an index the axis itself, or that beyond the start of a run of terms?
  bool runs_along(const Expr& index, const Var& axis) const {
    const Linear l = to_linear(index);
    const auto step = l.coefficient_of(axis);
    if (!step || !step->is_constant() || step->constant != 1) return false;
    const Expr start = to_expr(l.without(axis));
    return std::none_of(reduce_.begin(), reduce_.end(),
                        [&](size_t r) { return uses_var(start, block_.axes[r].var); });
  }
  // Reduction axes: the window outside, channels (that run along memory) inside.
  std::vector<size_t> reduce_in_order() const {
    std::vector<std::pair<int64_t, size_t>> order;
    for (size_t r : reduce_) {
      int64_t stride = is_one(block_.axes[r].extent) ? INT64_MAX : 0;
      for (const BlockAccess& a : block_accesses(block_))
        if (!a.write && !s_.is_constant(a.buffer) && a.strides[r])
          stride = std::max(stride, as_int(a.strides[r]).value_or(int64_t{1} << 40));
      order.push_back({-stride, r});
    }
    std::stable_sort(order.begin(), order.end());
    std::vector<size_t> result;
    for (auto& [stride, r] : order) result.push_back(r);
    return result;
  }

  // Loops: outer axes, jo, io, reduction, ii, jc, jv (the reduction only in the main block).
  bool order_loops(const std::string& block, const Block& b, bool main) {
    auto loop = [&](size_t n) { return loop_of_axis(b, main ? parallel_[n] : n); };
    std::vector<std::string> order;
    for (size_t n = 0; n < parallel_.size(); ++n)
      if (n != j_ && std::find(rows_.begin(), rows_.end(), n) == rows_.end() &&
          std::find(outer_.begin(), outer_.end(), n) == outer_.end())
        order.push_back(loop(n));
    for (size_t k = outer_.size(); k-- > 0;) order.push_back(loop(outer_[k]));
    outer_count_ = order.size();
    for (size_t k = rows_.size(); k-- > 0;) order.push_back(loop(rows_[k]));
    order.push_back(loop(j_));
    if (main)
      for (size_t r : reduce_in_order()) {
        order.push_back(loop_of_axis(b, r));
        reduce_loops_.push_back(order.back());
      }
    if (order.size() > 1 && !s_.apply("reorder", order)) return false;
    const int64_t width = tile_.vectors * lanes_;
    if (rows_.empty()) {  // one row, so that the tile has its shape all the same
      if (!s_.apply("split", {loop(j_), name(block, "jall"), name(block, "jt")}, {width}))
        return false;
      if (!s_.apply("split", {name(block, "jall"), name(block, "jo"), name(block, "row")}, {1}))
        return false;
      if (!s_.apply("split", {name(block, "row"), name(block, "io"), name(block, "ii")}, {1}))
        return false;
    } else {
      std::string row = loop(rows_.back());
      for (size_t k = rows_.size() - 1; k-- > 0;) {
        const std::string fused = name(block, "row") + std::to_string(k);  // no axis has that name
        if (!s_.apply("fuse_axes", {row, loop(rows_[k]), fused})) return false;
        row = fused;
      }
      if (!s_.apply("split", {row, name(block, "io"), name(block, "ii")}, {tile_.rows}))
        return false;
      if (!s_.apply("split", {loop(j_), name(block, "jo"), name(block, "jt")}, {width}))
        return false;
    }
    if (!s_.apply("split", {name(block, "jt"), name(block, "jc"), name(block, "jv")}, {lanes_}))
      return false;
    if (main && dot_ && !split_terms()) return false;
    std::vector<std::string> tiled{name(block, "jo")};
    if (main && !block_reduction()) return false;
    if (main) tiled.insert(tiled.end(), hoisted_.begin(), hoisted_.end());
    if (columns_first_)
      tiled.insert(tiled.end(), order.begin(), order.begin() + static_cast<long>(outer_count_));
    tiled.push_back(name(block, "io"));
    if (main)
      tiled.insert(tiled.end(), reduce_loops_.begin() + static_cast<long>(hoisted_.size()),
                   reduce_loops_.end());
    if (main && matrix_) tiled.push_back(name(block, "kt"));
    for (const char* part : {"ii", "jc", "jv"}) tiled.push_back(name(block, part));
    if (main && dot_) tiled.push_back(name(block, "kq"));
    return s_.apply("reorder", tiled);
  }
  // The terms of a Dot leave the innermost reduction, and the groups of a tile of Dots theirs.
  bool split_terms() {
    const std::string groups = name(m_, matrix_ ? "kg" : "ko");
    if (!s_.apply("split", {reduce_loops_.back(), groups, name(m_, "kq")}, {dot_})) return false;
    reduce_loops_.back() = name(m_, "ko");
    return !matrix_ ||
           s_.apply("split", {groups, name(m_, "ko"), name(m_, "kt")}, {MatrixTile::kGroups});
  }
  // Tiles of Dots inside the tile of sums.
  bool split_rows() {
    std::vector<std::string> order;
    for (const char* part : {"ir", "jc", "ii", "kt", "jv", "kq"}) order.push_back(name(m_, part));
    return s_.apply("split", {name(m_, "ii"), name(m_, "ir"), name(m_, "ii")}, {matrix_->rows}) &&
           s_.apply("reorder", order);
  }

  void note_blocks() {
    s_.note(m_ +
            ": a panel of columns over the whole reduction is larger than half of the cache: " +
            "the outer part of the reduction goes around the rows");
  }
  // Where a packed panel of columns is too large to stay in cache while all rows pass over it, the
  // outer part of the reduction goes around the rows: their sums wait in a buffer of their own.
  bool block_reduction() {
    auto rows = as_int(row_extent_);
    if (columns_first_ && rows)
      for (size_t n : outer_) rows = *rows * extent_or(block_.axes[parallel_[n]].extent, 1);
    const DType t = block_.body.as<Store>()->buffer->dtype;
    const int64_t width = tile_.vectors * lanes_, each = dot_ ? 1 : byte_size(t);
    if (!rows || reduce_loops_.empty()) return true;
    std::vector<int64_t> extents;
    int64_t panel = width * each;
    for (size_t r : reduce_in_order()) {
      extents.push_back(extent_or(block_.axes[r].extent, 1));
      panel *= extents.back();
    }
    constexpr int64_t kMostSums = 48 << 10;  // bytes on the stack
    const int64_t most = s_.machine().l2_bytes / 2;
    if (panel <= most || *rows < 3 * tile_.rows || *rows * width * byte_size(t) > kMostSums)
      return true;
    size_t outer = 0;
    for (; panel > most / 2 && outer + 1 < extents.size(); ++outer) {
      panel /= extents[outer];
      hoisted_.push_back(reduce_loops_[outer]);
    }
    if (panel <= most / 2) {
      note_blocks();
      return true;
    }
    // The innermost loop is cut where its extent has a divisor to cut it at.
    const std::string last = reduce_loops_.back();
    const int64_t step = std::max<int64_t>(dot_, 1) * (matrix_ ? MatrixTile::kGroups : 1),
                  n = extents.back() / step;
    for (int64_t parts = 2; parts <= 16; ++parts) {
      if (n % parts != 0 || panel / parts > most / 2) continue;
      const std::string around = name(m_, "kb"), inside = name(m_, "ki");
      if (!s_.apply("split", {last, around, inside}, {n / parts})) return false;
      hoisted_.push_back(around);
      reduce_loops_.back() = around;
      reduce_loops_.push_back(inside);
      note_blocks();
      return true;
    }
    return true;
  }

  void annotate(const std::string& block) {
    s_.apply("vectorize", {name(block, "jv")});
    s_.apply("unroll", {name(block, "jc")});
    if (matrix_ && block == m_) s_.apply("unroll", {name(m_, "ir")});
    if (!matrix_) s_.apply("unroll", {name(block, "ii")});
  }
  void annotate_init() {
    s_.apply("vectorize", {name(m_, "jv_init")});
    s_.apply("unroll", {name(m_, "jc_init")});
    if (!matrix_) s_.apply("unroll", {name(m_, "ii_init")});
  }

  // The block that makes what the tile reads, of a copy with padding; empty when there is none.
  std::string padding_block() const {
    for (const BlockAccess& a : block_accesses(block_)) {
      if (a.write || a.buffer->scope == Scope::kParam ||
          a.buffer == block_.body.as<Store>()->buffer)
        continue;
      for (const BlockPlace& p : all_blocks(s_.kernel().body))
        if (!p.block->init && p.block->body.as<Store>() &&
            p.block->body.as<Store>()->buffer == a.buffer)
          return p.block->name;
    }
    return "";
  }
  // Rows of results that share one copy of what they read: as many as leave tasks for all threads
  // and a copy that stays in cache. extent: rows of one place; bytes: of what all tasks read.
  int64_t rows_of_a_copy(int64_t extent, int64_t tasks, int64_t bytes) const {
    constexpr int64_t kMostRows = 16, kFewestGroups = 8;
    const int64_t groups = std::max<int64_t>(kFewestGroups, 4 * s_.machine().threads);
    for (int64_t n = std::min(extent, kMostRows); n > 1; --n)
      if (extent % n == 0 && tasks / n >= groups &&
          2 * n * bytes / tasks <= s_.machine().l2_bytes / 2)
        return n;
    return 1;
  }
  // A padded copy that no cache holds is made for rows of results by the task that reads it.
  bool stage_padding() {
    constexpr int64_t kFewestTasks = 16;
    const std::string padding = padding_block();
    if (padding.empty() || outer_.empty() || outer_loops_ > 0 || columns_first_) return false;
    const BlockPlace p = s_.place(m_), from = s_.place(padding);
    const Buffer& copy = from.block->body.as<Store>()->buffer;
    int64_t bytes = byte_size(copy->dtype), tasks = 1;
    for (const Expr& e : copy->shape) bytes *= extent_or(e, 1);
    for (size_t i = 0; i < outer_count_; ++i) tasks *= extent_or(p.loops[i]->extent, 1);
    if (bytes <= s_.machine().l2_bytes / 2 ||
        tasks < std::max<int64_t>(kFewestTasks, 4 * s_.machine().threads))
      return false;
    const auto mark = s_.mark();
    std::vector<std::string> around;
    for (size_t i = 0; i < outer_count_; ++i) around.push_back(p.loops[i]->var.name());
    bool done = true;
    // Neighbouring rows read much of the same.
    const int64_t group =
        rows_of_a_copy(extent_or(p.loops[outer_count_ - 1]->extent, 1), tasks, bytes);
    if (group > 1) {
      done = s_.apply("split", {around.back(), name(m_, "go"), name(m_, "gi")}, {group});
      around.back() = name(m_, "go");
    }
    std::string rows = around[0];
    for (size_t i = 1; done && i < around.size(); ++i) {
      const std::string fused = m_ + ".rows" + std::to_string(i);
      done = s_.apply("fuse_axes", {rows, around[i], fused});
      rows = fused;
    }
    done = done && s_.apply("stage_at", {padding, rows}) && s_.apply("parallelize", {rows});
    if (!done) {
      s_.restore(mark);
      return false;
    }
    s_.note(padding +
            ": the padded copy is larger than the cache: each task pads what its rows read");
    const For* inner = s_.place(padding).loops.back();
    int64_t lanes = s_.machine().lanes(std::max(byte_size(copy->dtype), 4));
    while (lanes > 4 && extent_or(inner->extent, lanes) <= lanes / 2) lanes /= 2;
    if (s_.apply("split", {inner->var.name(), padding + ".o", padding + ".v"}, {lanes}))
      s_.apply("vectorize", {padding + ".v"});
    return true;
  }

  // Is all around the block an ordered axis, of whose steps each is work for several threads? What
  // is not known of its extents may be 1.
  bool is_large_step() const {
    int64_t least = 1;
    for (const BlockAxis& a : block_.axes) least *= extent_or(a.extent, 1);
    const BlockPlace p = s_.place(m_);
    size_t ordered = 0;
    for_each_stmt(s_.kernel().body, [&](const Stmt& s) {
      const auto* around = s.as<Block>();
      if (!around || !find_block(around->body, m_).ok()) return;
      for (size_t i = 0; i < outer_loops_; ++i)
        for (size_t a = 0; a < around->axes.size(); ++a)
          ordered += around->axes[a].kind == AxisKind::kOrdered &&
                     around->bindings[a].same_as(p.loops[i]->var);
    });
    return ordered == outer_loops_ && least >= kParallelWork * 4;
  }
  void parallelize_step() {
    if (!is_large_step()) return;
    const BlockPlace p = s_.place(m_);
    size_t n = outer_loops_;
    while (n + 1 < p.loops.size() && is_one(p.loops[n]->extent)) ++n;
    s_.apply("parallelize", {p.loops[n]->var.name()});
  }
  void parallelize() {
    if (outer_loops_ > 0) return parallelize_step();
    if (instances(block_) < kParallelWork * 4) return;
    const BlockPlace p = s_.place(m_);
    std::string parallel = p.loops[0]->var.name();
    std::vector<std::string> rest;
    for (size_t i = 1; i <= outer_count_ && i < p.loops.size(); ++i)
      rest.push_back(p.loops[i]->var.name());
    int64_t tasks = extent_or(p.loops[0]->extent, kUnknownExtent);
    for (const std::string& next : rest) {
      const std::string fused = m_ + ".par" + next.substr(next.rfind('.') + 1);
      if (!s_.apply("fuse_axes", {parallel, next, fused})) break;
      parallel = fused;
    }
    tasks = extent_or(s_.place(m_).loops[0]->extent, kUnknownExtent);
    const int64_t threads = std::max(s_.machine().threads, 1);
    // Too few tasks to balance: the row tiles are dealt out too, when no row is left over.
    const auto rows = as_int(row_extent_);
    if (tasks < 4 * threads && rows && *rows % tile_.rows == 0 && !rows_.empty()) {
      const std::string fused = m_ + ".par_io";
      if (s_.apply("fuse_axes", {parallel, name(m_, "io"), fused})) parallel = fused;
    }
    s_.apply("parallelize", {parallel});
  }

  ScheduleState& s_;
  std::string m_, e_;
  Block block_;
  std::vector<size_t> parallel_, reduce_;  // axes of the main block
  std::vector<size_t> rows_, outer_;       // positions among the parallel axes, innermost first
  size_t j_ = 0, outer_count_ = 0, outer_loops_ = 0;
  static constexpr int64_t kMostWindow = 7;
  bool slides_ = false;         // the innermost reduction is unrolled: rows share what it reads
  bool columns_first_ = false;  // panels of columns go around the outer axes
  int64_t dot_ = 0;  // terms of a dot product that the innermost reduction goes by; 0: none
  DType left_ = DType::kInt32;        // with dot_: the type of the operand that is no constant,
  int64_t depth_ = 0;                 // and the extent of that reduction
  std::optional<MatrixTile> matrix_;  // the rows of a tile are not unrolled then
  Expr row_extent_ = 1;
  int64_t lanes_ = 1;
  TileCost tile_;
  std::vector<std::string> reduce_loops_;
  std::vector<std::string> hoisted_;  // reduction loops around the rows; the first of reduce_loops_
};

}  // namespace

bool tile_rule(ScheduleState& s, const std::string& block, const std::string& epilogue) {
  return TileRule(s, block, epilogue).run();
}

}  // namespace tilewright::passes
