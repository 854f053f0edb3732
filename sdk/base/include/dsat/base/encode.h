// Bytes as text for other formats. Threading: pure functions. Errors: none.
#ifndef DSAT_BASE_ENCODE_H_
#define DSAT_BASE_ENCODE_H_

#include <string>
#include <string_view>

namespace dsat {

std::string base64(std::string_view bytes);

// The text as part of an address: all bytes but letters, digits, -._~ and those of `kept` become %XX.
std::string percent_encoded(std::string_view text, std::string_view kept = "");

}  // namespace dsat

#endif  // DSAT_BASE_ENCODE_H_
