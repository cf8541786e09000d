// What a model does with its initialisers, as far as training has to know.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontends/onnx/model.h"

namespace tilewright::train {

class InitializerUses {
 public:
  explicit InitializerUses(const OnnxGraph& graph);  // which must outlive the object

  // Running means and variances of BatchNormalization nodes, which exporters let several nodes share by
  // copies.
  std::set<std::string> statistics() const;
  // Operands that are settings of a node, and would be trained into nonsense. Whether exponents are among them, which
  // some networks learn, is for the caller to say.
  std::set<std::string> settings(bool with_exponents) const;
  // Normalisations that take it as scale or bias.
  std::vector<const OnnxNode*> normalizations(const std::string& name) const;

 private:
  struct Use {
    const OnnxNode* node;
    size_t operand;
  };
  std::set<std::string> used_as(bool (*role)(const OnnxNode&, size_t operand)) const;

  std::map<std::string, std::vector<Use>> uses_;  // by initialiser, through copies too
};

}  // namespace tilewright::train
