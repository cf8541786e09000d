// The --shape options.
#include <algorithm>
#include <set>

#include "frontends/cli/cli.h"

namespace tilewright::cli {

const char* const kShapeHelp =
    "--shape NAME=EXTENTS gives the extents of an input (image=1x3x224x224) or of a symbol "
    "(batch=1);\n"
    "`tilewright info MODEL` lists both. Several in one option stand between commas: --shape "
    "ids=1x16,mask=1x16.\n"
    "Options that name different things make up one set; naming a thing again begins the next "
    "set.\n"
    "compile makes one variant per set and runs the first that fits exactly: --shape batch=1 "
    "--shape batch=8.\n"
    "The set `any` leaves all extents symbolic: --shape batch=1 --shape any. Without --shape that "
    "is the only one.\n"
    "Where open extents meet in broadcasting, a set has a second variant for runs in which one of "
    "them is 1.\n"
    "The set `apart` does so, too, but extents of one symbol may differ, for models that name "
    "different ones alike.";

namespace {

// NAME=EXTENTS; the name may hold '='.
struct Item {
  std::string name;
  Shape shape;
};
Result<Item> parse_item(const std::string& text) {
  const std::string where = "--shape " + text;
  const size_t at = text.find_last_of('=');
  if (at == std::string::npos || at == 0)
    return invalid(where + ": expected NAME=1x3x224x224 or SYMBOL=4");
  Item item{text.substr(0, at), {}};
  const std::string extents = text.substr(at + 1);
  for (size_t from = 0; from <= extents.size() && !extents.empty();) {
    constexpr size_t kMostDigits = 12;
    const size_t x = std::min(extents.find('x', from), extents.size());
    const std::string part = extents.substr(from, x - from);
    if (part.empty() || part.size() > kMostDigits ||
        part.find_first_not_of("0123456789") != std::string::npos)
      return invalid(where + ": '" + part + "' is no extent (a whole number, at least 0)");
    item.shape.push_back(std::stoll(part));
    from = x + 1;
  }
  return item;
}

// At commas, which names of inputs can therefore not hold here.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    parts.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return parts;
}

// Into the set, as an input's shape or as a symbol's extent, whichever the model has by that name.
Status add(Binding& set, const Item& item, const std::vector<InputInfo>& inputs) {
  auto input = std::find_if(inputs.begin(), inputs.end(),
                            [&](const InputInfo& i) { return i.name == item.name; });
  std::set<std::string> symbols;
  for (const InputInfo& i : inputs) symbols.insert(i.symbols.begin(), i.symbols.end());
  symbols.erase("");
  if (input != inputs.end()) {
    if (input->known_rank && item.shape.size() != input->extents.size())
      return invalid("--shape " + item.name + "=" + to_string(item.shape) +
                     ": the input has rank " + std::to_string(input->extents.size()));
    set.shapes[item.name] = item.shape;
  } else if (symbols.count(item.name) && item.shape.size() == 1) {
    set.symbols[item.name] = item.shape[0];
  } else if (symbols.count(item.name)) {
    return invalid("--shape " + item.name + ": a symbol has one extent, not " +
                   to_string(item.shape));
  } else {
    std::string known;
    for (const InputInfo& i : inputs) known += (known.empty() ? "'" : ", '") + i.name + "'";
    for (const std::string& s : symbols) known += ", '" + s + "'";
    return invalid("--shape: the model has no input or symbol '" + item.name + "'; it has " +
                   (known.empty() ? "none" : known));
  }
  return {};
}

// Every dimension of a set has one value. Fills in the symbols that shapes bind; one that they
// bind to several values is no symbol.
Status check(Binding& set, const std::vector<InputInfo>& inputs) {
  const std::map<std::string, int64_t> given_symbols = set.symbols;
  std::set<std::string> differ;
  for (const InputInfo& input : inputs) {
    auto given = set.shapes.find(input.name);
    if (given == set.shapes.end()) continue;
    for (size_t d = 0; d < input.extents.size(); ++d) {
      const int64_t value = given->second[d];
      const std::string here = "dimension " + std::to_string(d) + " of input '" + input.name + "'";
      if (input.extents[d] >= 0 && input.extents[d] != value)
        return invalid("--shape: " + here + " is " + std::to_string(input.extents[d]) +
                       " in the model, not " + std::to_string(value));
      if (input.extents[d] >= 0 || input.symbols[d].empty()) continue;
      auto [it, fresh] = set.symbols.emplace(input.symbols[d], value);
      if (fresh || it->second == value) continue;
      if (given_symbols.count(it->first))
        return invalid("--shape: symbol '" + it->first + "' is bound to " +
                       std::to_string(it->second) + " by --shape " + it->first + " and to " +
                       std::to_string(value) + " by " + here);
      differ.insert(it->first);
    }
  }
  for (const std::string& symbol : differ) set.symbols.erase(symbol);
  return {};
}

}  // namespace

Result<std::vector<Binding>> parse_shapes(const std::vector<InputInfo>& inputs,
                                          const std::vector<std::string>& shapes) {
  std::vector<Binding> sets(1);
  std::set<std::string> named;  // in the last set
  bool any = false, apart = false;
  auto begin_set = [&] {
    if (!named.empty()) sets.emplace_back();
    named.clear();
  };
  for (const std::string& option : shapes) {
    if (option == "any" || option == "apart") {
      (option == "any" ? any : apart) = true;
      continue;
    }
    std::vector<Item> items;
    for (const std::string& text : split(option)) {
      TW_ASSIGN(Item item, parse_item(text));
      for (const Item& other : items)
        if (other.name == item.name)
          return invalid("--shape " + option + ": '" + item.name + "' is bound to " +
                         to_string(other.shape) + " and to " + to_string(item.shape));
      items.push_back(std::move(item));
    }
    if (std::any_of(items.begin(), items.end(),
                    [&](const Item& i) { return named.count(i.name) != 0; }))
      begin_set();
    for (const Item& item : items) {
      named.insert(item.name);
      TW_RETURN_IF_ERROR(add(sets.back(), item, inputs));
    }
  }
  for (Binding& set : sets) TW_RETURN_IF_ERROR(check(set, inputs));
  const bool only_apart = apart && !any && named.empty();
  if (any && !named.empty()) sets.emplace_back();  // behind those: it fits what they do not
  if (apart && !only_apart) sets.emplace_back();   // last: it fits everything
  sets.back().names_apart = apart;
  for (Binding& set : sets)
    for (const InputInfo& i : inputs)
      if (i.has_default) set.overrides.insert(i.name);
  return sets;
}

Result<Binding> parse_one_set(const std::vector<InputInfo>& inputs,
                              const std::vector<std::string>& shapes) {
  TW_ASSIGN(std::vector<Binding> sets, parse_shapes(inputs, shapes));
  if (sets.size() > 1)
    return invalid("--shape: an extent is given twice; only compile makes several variants");
  return std::move(sets[0]);
}

}  // namespace tilewright::cli
