// Lists in a text. Threading: pure function.
#ifndef DSAT_BASE_SPLIT_H_
#define DSAT_BASE_SPLIT_H_

#include <string>
#include <string_view>
#include <vector>

namespace dsat {

// The parts between the separators, empty parts too.
std::vector<std::string> split(std::string_view text, char separator);

}  // namespace dsat

#endif  // DSAT_BASE_SPLIT_H_
