// The values of command-line options.
//
// Errors: dsat::Error, one line that names the option and its text. Threading: pure functions.
#ifndef DSAT_TRAINER_BASE_OPTION_VALUES_H_
#define DSAT_TRAINER_BASE_OPTION_VALUES_H_

#include <cstdint>
#include <string>

namespace dsat::trainer {

int64_t parse_integer(const std::string& name, const std::string& text, int64_t low, int64_t high);
// Bytes, above 0.
uint64_t parse_memory(const std::string& name, const std::string& text);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_BASE_OPTION_VALUES_H_
