// One regular expression for each wording of each number, from torch 1.0 to today. docs/real-deepspeed.md lists them.
#include "outputs/oom_numbers.h"

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "dsat/base/numbers.h"
#include "dsat/base/units.h"
#include "dsat/error.h"

namespace dsat::host {

namespace {

// No device has more memory. "more than 1EB memory" is an overflow, not a request.
constexpr double kMostDeviceBytes = 1e15;
// Messages round to two decimals.
constexpr double kRounding = 1.01;

// A size as these messages print it: the number in group 1, the unit in group 2.
#define SIZE R"(([\d.,]*\d)\.? ?((?:[KMGT]i?)?B|bytes)?)"
// A size at the end of a form; no other letters follow.
#define LAST_SIZE SIZE R"((?:[^A-Za-z]|$))"

struct Form {
  std::optional<double> OomNumbers::*number;
  const char* regex;
};
const Form kForms[] = {
    {&OomNumbers::wanted, R"([Tt]ried to allocate )" LAST_SIZE},
    {&OomNumbers::wanted, R"(Requested +: )" LAST_SIZE},                              // torch with cudaMallocAsync
    {&OomNumbers::wanted, R"(emory allocating )" LAST_SIZE},                          // CuPy
    {&OomNumbers::wanted, R"(while trying to allocate )" LAST_SIZE},                  // XLA
    {&OomNumbers::wanted, R"(failed for size::)" LAST_SIZE},                          // Gaudi
    {&OomNumbers::wanted, R"(CUDA calloc (?:async )?)" LAST_SIZE},                    // NCCL
    {&OomNumbers::allocated, SIZE R"( already allocated)"},                           // torch to 2.0
    {&OomNumbers::allocated, R"(Of the allocated memory )" SIZE R"( is allocated)"},  // torch from 2.1
    {&OomNumbers::allocated, R"(Currently allocated +: )" LAST_SIZE},
    {&OomNumbers::allocated, R"(MPS allocated: )" LAST_SIZE},
    {&OomNumbers::allocated, R"(allocated so far: )" LAST_SIZE},
    {&OomNumbers::allocated, R"(; in use )" LAST_SIZE},  // dsat-trial
    {&OomNumbers::reserved, SIZE R"( reserved in total)"},
    {&OomNumbers::reserved, SIZE R"( cached)"},              // torch to 1.3
    {&OomNumbers::free, R"(of which )" SIZE R"( is free)"},  // torch from 2.1
    {&OomNumbers::free, R"(already allocated; )" SIZE R"( free)"},
    {&OomNumbers::free, R"(Free \(according to CUDA\)\s*: )" LAST_SIZE},
    // The limit of a memory fraction is lower than the device's memory, so its form comes first.
    {&OomNumbers::total, R"(free[.;] )" SIZE R"( allowed)"},
    {&OomNumbers::total, SIZE R"( total capacity)"},
    {&OomNumbers::total, R"(total capac\w*ty of )" LAST_SIZE},  // torch 2.1 misspells it
    {&OomNumbers::total, R"(Device limit +: )" LAST_SIZE},
    {&OomNumbers::total, R"(max allowed: )" LAST_SIZE},
    {&OomNumbers::total, R"(limit set to: )" LAST_SIZE},
    {&OomNumbers::total, R"(; in use [\d.]+ \w+ of )" LAST_SIZE},
};
#undef LAST_SIZE
#undef SIZE

std::optional<double> bytes_of(std::string number, const std::string& unit) {
  number.erase(std::remove(number.begin(), number.end(), ','), number.end());
  try {
    const bool plain = unit.empty() || unit == "bytes" || unit == "B";
    const double bytes = static_cast<double>(parse_size(plain ? number : number + unit));
    return bytes <= kMostDeviceBytes ? std::optional<double>(bytes) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<double> find_size(const std::string& message, const RE2& form) {
  std::string number, unit;
  if (!RE2::PartialMatch(message, form, &number, &unit)) return std::nullopt;
  return bytes_of(number, unit);
}

}  // namespace

OomNumbers read_oom_numbers(const std::string& message) {
  static const auto forms = [] {
    std::vector<std::pair<std::optional<double> OomNumbers::*, std::unique_ptr<const RE2>>> compiled;
    for (const Form& form : kForms) {
      compiled.emplace_back(form.number, std::make_unique<RE2>(form.regex, RE2::Latin1));
    }
    return compiled;
  }();
  OomNumbers numbers;
  for (const auto& [number, form] : forms) {
    if (!(numbers.*number)) numbers.*number = find_size(message, *form);
  }
  static const RE2 unallocated(R"(([\d.]+) ?(\w+) is reserved by PyTorch but unallocated)", RE2::Latin1);
  if (!numbers.reserved && numbers.allocated) {
    if (const auto rest = find_size(message, unallocated)) numbers.reserved = *numbers.allocated + *rest;
  }
  return numbers;
}

bool asks_for_the_impossible(const std::string& message) {
  if (message.find("more than 1EB") != std::string::npos) return true;
  static const RE2 request(R"([Tt]ried to allocate ([\d.]+) ?((?:[KMGT]i?)?B)\b)", RE2::Latin1);
  constexpr size_t kLongest = 15;  // a longer row of digits is no number at all
  std::string number, unit;
  return RE2::PartialMatch(message, request, &number, &unit) && number.size() <= kLongest && !bytes_of(number, unit);
}

bool is_refused_in_plenty(const OomNumbers& numbers) {
  constexpr double kPlenty = 10, kLeastFree = 1e9;
  if (!numbers.wanted || !numbers.free || !numbers.total) return false;
  const double held = std::max(numbers.reserved.value_or(0), numbers.allocated.value_or(0));
  const bool is_within_limit = held + *numbers.wanted <= *numbers.total;
  return is_within_limit && *numbers.free >= std::max(kLeastFree, kPlenty * *numbers.wanted);
}

std::optional<uint64_t> peak_above_bytes(const OomNumbers& numbers) {
  if (!numbers.wanted || !numbers.allocated || *numbers.wanted <= 0) return std::nullopt;
  if (numbers.total && *numbers.allocated > *numbers.total * kRounding) return std::nullopt;
  if (numbers.reserved && *numbers.allocated > *numbers.reserved * kRounding) return std::nullopt;
  return static_cast<uint64_t>(*numbers.allocated + *numbers.wanted);
}

}  // namespace dsat::host
