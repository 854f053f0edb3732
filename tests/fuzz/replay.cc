// Runs files, and all files of folders, through a fuzz target: the corpus as a test, without libFuzzer.
// A file that a fuzzer found is tried in the same way: fuzz_json FILE.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "dsat/base/files.h"
#include "fuzz/fuzz_target.h"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(argv[i])) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string text = dsat::read_file(file);
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);  // the last name before a crash is the one
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  }
  std::printf("%zu inputs\n", files.size());
  return files.empty() ? 1 : 0;
}
