// Files of every reader with changed bytes: each is read, or refused by an error of the user's kind. A crash or a hang
// ends the process with the reader and the number, which runs it alone.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/fuzz/readers.h"
#include "tests/fuzz/tried.h"

namespace tilewright {
namespace {

// Between one and a few changes, as fuzzers make them: bits, bytes, numbers of several widths, pieces that are gone,
// doubled, moved, or of another file.
class ByteMutator {
 public:
  ByteMutator(const std::vector<Bytes>& seeds, std::mt19937_64& random)
      : seeds_(seeds), random_(random) {}
  Bytes run() {
    Bytes b = seeds_[below(seeds_.size())];
    for (uint64_t k = 1 + below(4); k > 0; --k) change(b);
    return b;
  }

 private:
  size_t below(uint64_t n) { return n == 0 ? 0 : static_cast<size_t>(random_() % n); }
  // A change of one of eight kinds, at a place of its own. Numbers are those at which sums overflow and signs
  // change, and pieces of other files bring what is right elsewhere.
  void change(Bytes& b) {
    if (b.empty()) return b.push_back(static_cast<uint8_t>(random_()));
    const size_t at = below(b.size()), length = 1 + below(std::min<size_t>(b.size() - at, 64));
    const auto begin = b.begin() + static_cast<long>(at), end = begin + static_cast<long>(length);
    switch (below(8)) {
      case 0: *begin ^= static_cast<uint8_t>(1u << below(8)); break;
      case 1: *begin = static_cast<uint8_t>(random_()); break;
      case 2: b.erase(begin, end); break;
      case 3: {
        const Bytes piece(begin, end);
        b.insert(b.begin() + static_cast<long>(below(b.size() + 1)), piece.begin(), piece.end());
        break;
      }
      case 4: b.resize(at); break;
      case 5: {
        static constexpr int64_t kNumbers[] = {0,         -1,        1,         127,      255,
                                               INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
        const int64_t n = kNumbers[below(std::size(kNumbers))];
        std::memcpy(b.data() + at, &n, std::min<size_t>(size_t{1} << below(4), b.size() - at));
        break;
      }
      case 6: std::fill(begin, end, static_cast<uint8_t>("\0\xff[{(9"[below(6)])); break;
      default: {
        const Bytes& other = seeds_[below(seeds_.size())];
        const size_t from = below(other.size()), most = std::min<size_t>(other.size() - from, 256);
        b.insert(begin, other.begin() + static_cast<long>(from),
                 other.begin() + static_cast<long>(from + below(most + 1)));
      }
    }
  }
  const std::vector<Bytes>& seeds_;
  std::mt19937_64& random_;
};

// FOLDER/<reader>/<number>, for libFuzzer to begin with.
void write_seeds(const Reader& r, const std::vector<Bytes>& seeds, const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / r.name;
  std::filesystem::create_directories(path);
  for (size_t k = 0; k < seeds.size(); ++k)
    std::ofstream(path / std::to_string(k), std::ios::binary)
        .write(reinterpret_cast<const char*>(seeds[k].data()),
               static_cast<std::streamsize>(seeds[k].size()));
}

// File number k of a reader is a function of k and of the reader's seeds alone. Each reader is tried in turn, or
// those that are named.
int run(int argc, char** argv) {
  uint64_t first = 0, count = 1000;
  std::vector<std::string> wanted;
  std::string seeds_folder;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if ((a == "--first" || a == "--count") && i + 1 < argc)
      (a == "--first" ? first : count) = std::strtoull(argv[++i], nullptr, 10);
    else if (a == "--write-seeds" && i + 1 < argc)
      seeds_folder = argv[++i];
    else
      wanted.push_back(a);
  }
  bool any = false;
  for (const Reader& r : readers()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), r.name) == wanted.end())
      continue;
    any = true;
    begin_try("the seeds of " + std::string(r.name), 0);
    const std::vector<Bytes> seeds = r.seeds();
    if (seeds.empty()) {
      std::fprintf(stderr, "%s has no seeds\n", std::string(r.name).c_str());
      return 1;
    }
    if (!seeds_folder.empty()) {
      write_seeds(r, seeds, seeds_folder);
      continue;
    }
    for (uint64_t k = first; k < first + count; ++k) {
      begin_try(std::string(r.name) + " --first " + std::to_string(k) + " --count 1", 60);
      std::mt19937_64 random(k);
      const Bytes bytes = ByteMutator(seeds, random).run();
      r.read(bytes);
    }
    begin_try("nothing", 0);
    std::printf("%s: %llu files of %zu seeds, 0 findings\n", std::string(r.name).c_str(),
                static_cast<unsigned long long>(count), seeds.size());
  }
  if (!any) {
    std::fprintf(stderr,
                 "usage: mutated_files [--first N] [--count N] [--write-seeds FOLDER] [READER...]; "
                 "the readers are");
    for (const Reader& r : readers()) std::fprintf(stderr, " %s", std::string(r.name).c_str());
    std::fprintf(stderr, "\n");
  }
  return any ? 0 : 2;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) { return tilewright::run(argc, argv); }
