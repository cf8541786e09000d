// What the commands of this folder are told: numbered cases of files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tilewright {

// Where the values of options go ("--first"), and all other words.
struct CommandLine {
  std::map<std::string, uint64_t*> numbers;
  std::map<std::string, std::string*> texts;
  std::vector<std::string> words;
};
// Returns false for an unknown option or one without a value.
bool read_options(int argc, char** argv, CommandLine& line);

// Returns the ONNX files below one megabyte in the folders and in those inside them, sorted by path.
std::vector<std::filesystem::path> small_models(const std::vector<std::string>& folders);

}  // namespace tilewright
