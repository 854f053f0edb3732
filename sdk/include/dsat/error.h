// The exception of the C++ layer, its JSON type, and the string conversions that both sides of the ABI use.
#ifndef DSAT_ERROR_H_
#define DSAT_ERROR_H_

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "dsat/abi.h"

namespace dsat {

// JSON whose objects keep their keys in the order of the text.
using Json = nlohmann::ordered_json;

// A one-line message, with the status that crosses the ABI.
class Error : public std::runtime_error {
 public:
  Error(dsat_status code, const std::string& message) : std::runtime_error(message), code_(code) {}
  explicit Error(const std::string& message) : Error(DSAT_INVALID_ARGUMENT, message) {}
  dsat_status code() const { return code_; }

 private:
  dsat_status code_;
};

namespace detail {
// A NULL pointer is the empty text.
inline std::string_view view(dsat_str s) {
  return s.data == nullptr ? std::string_view() : std::string_view(s.data, s.size);
}
inline dsat_str str(std::string_view s) { return dsat_str{s.data(), s.size()}; }
}  // namespace detail

}  // namespace dsat

#endif  // DSAT_ERROR_H_
