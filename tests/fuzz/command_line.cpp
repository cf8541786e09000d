#include "tests/fuzz/command_line.h"

#include <algorithm>
#include <cstdlib>

namespace tilewright {

bool read_options(int argc, char** argv, CommandLine& line) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto number = line.numbers.find(word);
    const auto text = line.texts.find(word);
    if (number == line.numbers.end() && text == line.texts.end()) {
      if (word.starts_with("--")) return false;
      line.words.push_back(word);
      continue;
    }
    if (++i == argc) return false;
    if (number != line.numbers.end())
      *number->second = std::strtoull(argv[i], nullptr, 10);
    else
      *text->second = argv[i];
  }
  return true;
}

std::vector<std::filesystem::path> small_models(const std::vector<std::string>& folders) {
  constexpr uint64_t kMostBytes = 1 << 20;
  std::vector<std::filesystem::path> all;
  for (const std::string& folder : folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.path().extension() == ".onnx" && entry.file_size() < kMostBytes)
        all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace tilewright
