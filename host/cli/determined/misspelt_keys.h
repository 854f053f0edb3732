// The keys of an experiment file: misspelt keys are refused, keys without effect are listed.
//
// Threading: pure functions. Errors: dsat::Error "FILE:LINE:COLUMN: KEY ...".
#ifndef DSAT_CLI_DETERMINED_MISSPELT_KEYS_H_
#define DSAT_CLI_DETERMINED_MISSPELT_KEYS_H_

#include <string>
#include <vector>

#include "dsat/yaml/yaml_file.h"

namespace dsat::cli {

// Throws for a key that Determined does not have and that is near one that it has.
void refuse_misspelt_keys(const YamlFile& file);

// The keys of a file that have no effect here, as dotted names: all keys but `used`, which the caller reads.
std::vector<std::string> keys_without_effect(const YamlFile& file, const std::vector<std::string>& used);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DETERMINED_MISSPELT_KEYS_H_
