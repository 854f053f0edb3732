// Prefixes and suffixes of texts. Threading: pure functions.
#ifndef DSAT_BASE_AFFIX_H_
#define DSAT_BASE_AFFIX_H_

#include <string_view>

namespace dsat {

constexpr bool starts_with(std::string_view text, std::string_view head) { return text.substr(0, head.size()) == head; }

constexpr bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}

}  // namespace dsat

#endif  // DSAT_BASE_AFFIX_H_
