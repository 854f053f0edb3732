// What the fuzz targets share. Each target reads one kind of text as the programs do: it may refuse it by dsat::Error;
// any other exception, a crash, a finding of a sanitizer, or a minute without an end is a defect.
//
// With the preset `fuzz` a target is a libFuzzer program; otherwise replay.cc runs the corpus through it.
#ifndef DSAT_TESTS_FUZZ_FUZZ_TARGET_H_
#define DSAT_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dsat/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace dsat::fuzz {

// Runs `read`, which may refuse its text. The refusal is one line.
template <class Read>
void may_refuse(Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
  }
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The lines of the text, without their ends.
inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace dsat::fuzz

#endif  // DSAT_TESTS_FUZZ_FUZZ_TARGET_H_
