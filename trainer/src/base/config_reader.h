// Typed look-ups in a configuration. Absent, null and "auto" give the default; a wrong type is a dsat::Error that
// names the key, what it holds and what is expected.
#ifndef DSAT_TRAINER_BASE_CONFIG_READER_H_
#define DSAT_TRAINER_BASE_CONFIG_READER_H_

#include <cstdint>
#include <string>

#include "dsat/error.h"

namespace dsat::trainer {

// nullptr: absent, null or "auto". `key` is dotted.
const Json* given(const Json& config, const std::string& key);

bool read_bool(const Json& config, const std::string& key, bool otherwise);
double read_number(const Json& config, const std::string& key, double otherwise, double low, double high);
// 5e8 is an integer too.
int64_t read_integer(const Json& config, const std::string& key, int64_t otherwise, int64_t low, int64_t high);
std::string read_string(const Json& config, const std::string& key, const std::string& otherwise);

// Whether a feature is switched on: `key` is true, or an object whose "enabled" is true.
bool is_enabled(const Json& config, const std::string& key);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_BASE_CONFIG_READER_H_
