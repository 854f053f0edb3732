// The text of one value, read as what it means.
//
// `shown` names the option, or the variable, in messages. Threading: pure functions. Errors: dsat::Error, one line that
// names it, the text as a shell would take it, and what would be right.
#ifndef DSAT_CLI_READ_VALUE_H_
#define DSAT_CLI_READ_VALUE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace dsat::cli_kit {

// Messages name the `words` that may stand in place of an integer; the caller handles those words before.
int64_t read_integer(const std::string& shown, const std::string& text, int64_t low, int64_t high,
                     const std::vector<std::string>& words = {});
double read_number(const std::string& shown, const std::string& text, int64_t low);
// Bytes, at least `least` of them.
uint64_t read_size(const std::string& shown, const std::string& text, uint64_t least = 1);
std::chrono::milliseconds read_duration(const std::string& shown, const std::string& text);  // above 0
// The index of the word.
size_t read_choice(const std::string& shown, const std::string& text, const std::vector<std::string>& words);

}  // namespace dsat::cli_kit

#endif  // DSAT_CLI_READ_VALUE_H_
