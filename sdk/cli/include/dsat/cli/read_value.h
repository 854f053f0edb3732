// Values from the text of an option or a variable.
//
// `shown` is the name of the option or variable in messages. Threading: pure functions. Errors: dsat::Error, one line
// with the name, the text in a shell's quotes, and the right form.
#ifndef DSAT_CLI_READ_VALUE_H_
#define DSAT_CLI_READ_VALUE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace dsat::cli_kit {

// `words`: texts that are also allowed, for the message. The caller has handled them before.
int64_t read_integer(const std::string& shown, const std::string& text, int64_t low, int64_t high,
                     const std::vector<std::string>& words = {});
double read_number(const std::string& shown, const std::string& text, int64_t low);
// Bytes, at least `least` of them.
uint64_t read_size(const std::string& shown, const std::string& text, uint64_t least = 1);
std::chrono::milliseconds read_duration(const std::string& shown, const std::string& text);  // above 0
// The index of the word in `words`.
size_t read_choice(const std::string& shown, const std::string& text, const std::vector<std::string>& words);

}  // namespace dsat::cli_kit

#endif  // DSAT_CLI_READ_VALUE_H_
